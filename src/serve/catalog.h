#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "document/paragraph.h"
#include "model/transformer.h"
#include "search/live_translator.h"

namespace lacuna::serve {

/// Where a model lies, and the languages that it is to be offered as; empty = those of its configuration.
struct ModelPlace {
  std::string path, src_lang, tgt_lang;
};

/// Reads "PATH" or "de-en=PATH". Throws UsageError for a code that is none.
ModelPlace parse_place(const std::string& text);

/// Returns a text that changes when another checkpoint is to be loaded from the place; empty if there is none.
std::string standing_at(const ModelPlace& place);

/// How models are loaded: the device, words of the command line for `translate` and `model.attention`, and the bytes of text that may wait
/// for each.
struct ModelLoading {
  std::string device;
  std::vector<std::string> overrides;
  int64_t most_waiting_bytes;
};

/// A loaded model that translates.
struct ServedModel {
  ServedModel(const ModelPlace& place, const ModelLoading& loading);

  std::string src_lang, tgt_lang;
  std::string standing;  ///< standing_at() its place, before it was loaded
  int64_t number;        ///< no two models of a process have the same
  TranslateOptions options;
  Vocabularies vocabularies;
  int64_t longest;  ///< pieces of the longest sentence of its training
  std::shared_ptr<const document::Splitting> splitting;
  std::shared_ptr<Transformer> transformer;
  std::unique_ptr<LiveTranslator> translator;
};
using ServedModelPtr = std::shared_ptr<ServedModel>;

/// The models of a service. They can be replaced while they translate: what a former one has taken, it finishes.
class Catalog {
 public:
  /// Loads all. Throws UsageError if two of them translate between the same languages, and whatever loading throws.
  Catalog(std::vector<ModelPlace> places, ModelLoading loading);
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  std::vector<ServedModelPtr> models() const;
  /// Returns the languages that it translates between: "de to en, fr to en".
  std::string pairs() const;
  /// Returns the model from `src_lang` to `tgt_lang`; `auto` is the only source of that target, if there is one. Throws RequestError 400,
  /// which says what there is, also where one of them is empty.
  ServedModelPtr find(const std::string& src_lang, const std::string& tgt_lang) const;

  /// Begins to load models anew on a thread of its own: all, or those whose checkpoint is another one now. `on_end` is called there, with
  /// an error or nothing, for each of them. A model that cannot be loaded stays what it was. Does nothing while another reload runs.
  void reload(bool all, std::function<void(const ServedModel& former, const std::string& error)> on_end);
  /// Waits for a reload that runs, and until no line waits or is translated any more.
  void finish();
  /// Frees replaced models that have answered all. To be called now and then, by a thread that does not search.
  void free_replaced();
  /// Takes what nobody waits for any more out of the queues.
  void drop_abandoned() const;
  /// Returns the sum over all models, replaced ones too.
  LiveTranslator::Load load() const;

 private:
  ServedModelPtr at(size_t index) const;
  void replace(size_t index, ServedModelPtr model);

  const std::vector<ModelPlace> places_;
  const ModelLoading loading_;
  mutable std::mutex mutex_;  // guards the next three
  std::vector<ServedModelPtr> models_;
  std::vector<ServedModelPtr> replaced_;
  LiveTranslator::Load freed_;        // what models that are gone have done
  std::vector<std::string> refused_;  // for each place, what stood there when it was loaded anew the last time; used by `loader_` alone
  std::atomic<bool> is_reloading_ = false;
  std::thread loader_;
};

}  // namespace lacuna::serve
