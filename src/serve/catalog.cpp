#include "serve/catalog.h"

#include <algorithm>
#include <chrono>
#include <regex>
#include <utility>

#include "base/error.h"
#include "base/process.h"
#include "base/spelling.h"
#include "checkpoint/run_folder.h"
#include "run/load_models.h"
#include "run/split_text.h"
#include "serve/exchange.h"

namespace lacuna::serve {
namespace {

void add(LiveTranslator::Load& sum, const LiveTranslator::Load& load) {
  using Load = LiveTranslator::Load;
  for (int64_t Load::*const what : {&Load::waiting_lines, &Load::waiting_bytes, &Load::searched_lines, &Load::translated_lines,
                                    &Load::abandoned_lines, &Load::failed_lines, &Load::tokens})
    sum.*what += load.*what;
}

std::string pairs_of(const std::vector<ServedModelPtr>& models) {
  std::vector<std::string> pairs;
  pairs.reserve(models.size());
  for (const ServedModelPtr& model : models) pairs.push_back(model->src_lang + " to " + model->tgt_lang);
  return join(pairs);
}

}  // namespace

ModelPlace parse_place(const std::string& text) {
  static const std::regex kWithLanguages("([A-Za-z]{2,3}(?:[_@.][A-Za-z0-9]+)*)-([A-Za-z]{2,3}(?:[_@.][A-Za-z0-9]+)*)=(.*)");
  std::smatch parts;
  if (!std::regex_match(text, parts, kWithLanguages)) return {text, "", ""};
  for (const std::string& code : {parts[1].str(), parts[2].str()})
    if (const std::string error = language_code_error(code); !error.empty())
      throw UsageError("-m " + text + ": \"" + code + "\" is no language" + error);
  return {parts[3], parts[1], parts[2]};
}

std::string standing_at(const ModelPlace& place) {
  try {
    return standing_of(resolve_checkpoint(place.path));
  } catch (const CheckpointError&) {
    return "";
  }
}

ServedModel::ServedModel(const ModelPlace& place, const ModelLoading& loading) : standing(standing_at(place)) {
  static std::atomic<int64_t> last_number = 0;
  number = ++last_number;
  LoadedEnsemble loaded = as_ensemble(load_models({place.path}, loading.device, loading.overrides));
  restrict_search(loaded.options.translate, place.path, loading.overrides);
  require_precision(loaded.options.translate.precision, loading.device, loading.overrides);
  options = loaded.options.translate;
  if (options.sampling != Sampling::kNone)
    throw UsageError(place.path + ": its translate.sampling is on, and a service searches by beams; add --translate.sampling none");
  options.n_best = 1;  // each request says how many it wants
  src_lang = place.src_lang.empty() ? loaded.options.data.src_lang : place.src_lang;
  tgt_lang = place.tgt_lang.empty() ? loaded.options.data.tgt_lang : place.tgt_lang;
  if (src_lang.empty() || tgt_lang.empty())
    throw UsageError(place.path + ": its configuration does not name its languages (data.src_lang, data.tgt_lang); write -m " +
                     shell_word("de-en=" + place.path) + " with the codes of source and target");
  splitting = splitting_for(loaded, src_lang, place.path + ": data.src_lang");
  vocabularies = loaded.vocabularies;
  longest = loaded.options.data.max_length;
  transformer = loaded.members.front();
  const AlignmentSource source = loaded.alignment_with(options);
  TranslatorSettings settings{options, AlignmentLevel::kWord, source.layer};
  settings.alignment_head = source.head;
  if (!options.shortlist.empty()) settings.shortlist = read_shortlist(options.shortlist, loaded.vocabularies);
  translator = std::make_unique<LiveTranslator>(Translator(loaded.model, vocabularies, std::move(settings)), loading.most_waiting_bytes);
}

Catalog::Catalog(std::vector<ModelPlace> places, ModelLoading loading)
    : places_(std::move(places)), loading_(std::move(loading)), refused_(places_.size()) {
  for (const ModelPlace& place : places_) {
    const auto model = std::make_shared<ServedModel>(place, loading_);
    for (size_t i = 0; i < models_.size(); ++i)
      if (models_[i]->src_lang == model->src_lang && models_[i]->tgt_lang == model->tgt_lang)
        throw UsageError("-m " + places_[i].path + " and -m " + place.path + " both translate from " + model->src_lang + " to " +
                         model->tgt_lang + "; one model is needed for each pair of languages");
    models_.push_back(model);
  }
}

Catalog::~Catalog() {
  if (loader_.joinable()) loader_.join();
}

void Catalog::finish() {
  constexpr std::chrono::milliseconds kPause{5};
  if (loader_.joinable()) loader_.join();
  for (LiveTranslator::Load now = load(); now.waiting_lines + now.searched_lines > 0; now = load()) std::this_thread::sleep_for(kPause);
}

std::vector<ServedModelPtr> Catalog::models() const {
  const std::lock_guard lock(mutex_);
  return models_;
}

std::string Catalog::pairs() const {
  return pairs_of(models());
}

ServedModelPtr Catalog::find(const std::string& src_lang, const std::string& tgt_lang) const {
  const std::vector<ServedModelPtr> all = models();
  for (const auto& [name, code] : {std::pair("source", &src_lang), {"target", &tgt_lang}})
    if (code->empty())
      throw RequestError(400, std::string(name).append(", the code of a language, is missing; there is ").append(pairs_of(all)));
  std::vector<ServedModelPtr> found;
  std::ranges::copy_if(all, std::back_inserter(found), [&](const ServedModelPtr& model) {
    return model->tgt_lang == tgt_lang && (model->src_lang == src_lang || src_lang == "auto");
  });
  if (found.size() == 1) return found.front();
  if (found.size() > 1)
    throw RequestError(400, "the source language is not detected, and several are translated to " + tgt_lang + ": " + pairs_of(found) +
                                "; name it as source");
  const std::string from = src_lang == "auto" ? "" : " from " + src_lang;
  throw RequestError(400, std::string("no model translates").append(from).append(" to ").append(tgt_lang) + "; there is " + pairs_of(all));
}

void Catalog::reload(bool all, std::function<void(const ServedModel& former, const std::string& error)> on_end) {
  if (is_reloading_.exchange(true)) return;
  if (loader_.joinable()) loader_.join();
  loader_ = std::thread([this, all, on_end = std::move(on_end)] {
    for (size_t i = 0; i < places_.size(); ++i) {
      const ServedModelPtr former = at(i);
      const std::string standing = standing_at(places_[i]);
      if (!all && (standing.empty() || standing == former->standing || standing == refused_[i])) continue;
      try {
        refused_[i] = standing;
        const auto model = std::make_shared<ServedModel>(places_[i], loading_);
        if (model->src_lang != former->src_lang || model->tgt_lang != former->tgt_lang)
          throw DataError(places_[i].path + ": it translates from " + model->src_lang + " to " + model->tgt_lang + " now");
        replace(i, model);
        on_end(*former, "");
      } catch (const std::exception& error) {
        on_end(*former, error.what());
      }
    }
    is_reloading_ = false;
  });
}

ServedModelPtr Catalog::at(size_t index) const {
  const std::lock_guard lock(mutex_);
  return models_[index];
}

void Catalog::replace(size_t index, ServedModelPtr model) {
  const std::lock_guard lock(mutex_);
  std::swap(models_[index], model);
  replaced_.push_back(std::move(model));
}

void Catalog::free_replaced() {
  std::vector<ServedModelPtr> unused;
  {
    const std::lock_guard lock(mutex_);
    const auto first =
        std::partition(replaced_.begin(), replaced_.end(), [](const ServedModelPtr& model) { return model.use_count() > 1; });
    std::move(first, replaced_.end(), std::back_inserter(unused));
    replaced_.erase(first, replaced_.end());
    for (const ServedModelPtr& model : unused) add(freed_, model->translator->load());
  }
}

void Catalog::drop_abandoned() const {
  std::vector<ServedModelPtr> all = models();
  {
    const std::lock_guard lock(mutex_);
    all.insert(all.end(), replaced_.begin(), replaced_.end());
  }
  for (const ServedModelPtr& model : all) model->translator->drop_abandoned();
}

LiveTranslator::Load Catalog::load() const {
  const std::lock_guard lock(mutex_);
  LiveTranslator::Load sum = freed_;
  for (const auto* const group : {&models_, &replaced_})
    for (const ServedModelPtr& model : *group) add(sum, model->translator->load());
  return sum;
}

}  // namespace lacuna::serve
