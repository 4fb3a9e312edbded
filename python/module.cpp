/// lacuna_nmt._lacuna: the model of model.h as a class of Python. The package's translator.py is what users see.

#include <c10/util/Exception.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "analysis/explored_sentence.h"
#include "base/device.h"
#include "base/error.h"
#include "base/log_sink.h"
#include "model.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lacuna::python {
namespace {

/// Ends work on other threads once Python has to handle a signal.
struct Stopped {};

/// Signals that Python has noted while a function computes without its lock. The thread that called the function looks for them.
class Signals {
 public:
  /// Throws Stopped, on each thread that looks, once a signal's handler has raised an exception, as that of Ctrl-C does.
  void look() {
    constexpr std::chrono::milliseconds kInterval{50};
    if (is_raised_) throw Stopped();
    if (std::this_thread::get_id() != caller_ || std::chrono::steady_clock::now() - last_look_ < kInterval) return;
    last_look_ = std::chrono::steady_clock::now();
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() == 0) return;
    raised_ = std::make_exception_ptr(nb::python_error());
    is_raised_ = true;
    throw Stopped();
  }
  [[noreturn]] void raise() const { std::rethrow_exception(raised_); }

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point last_look_ = std::chrono::steady_clock::now();
  std::exception_ptr raised_;
  std::atomic<bool> is_raised_ = false;
};

/// Returns what `work` computes, without Python's lock.
template <class F>
auto computed(const F& work) {
  Signals signals;
  try {
    const nb::gil_scoped_release unlocked;
    return work([&signals] { signals.look(); });
  } catch (const Stopped&) {
    signals.raise();
  }
}

template <class X>
using Array = nb::ndarray<nb::numpy, X>;

/// Makes a NumPy array of these values, which it owns.
template <class X>
nb::object array_of(std::vector<X> values, const std::vector<size_t>& shape) {
  auto kept = std::make_unique<std::vector<X>>(std::move(values));
  kept->reserve(1);  // nanobind takes an array at address 0 for none
  X* const data = kept->data();
  const nb::capsule owner(kept.release(), [](void* list) noexcept { delete static_cast<std::vector<X>*>(list); });
  return nb::cast(Array<X>(data, shape.size(), shape.data(), owner));
}

nb::object array_of(SiteAttention site) {
  const std::vector<size_t> shape = {static_cast<size_t>(site.layers), static_cast<size_t>(site.heads), static_cast<size_t>(site.queries),
                                     static_cast<size_t>(site.keys)};
  return array_of(std::move(site.weights), shape);
}

nb::object links_of(const std::vector<std::pair<int32_t, int32_t>>& links) {
  std::vector<int32_t> values;
  values.reserve(2 * links.size());
  for (const auto& [src, tgt] : links) values.insert(values.end(), {src, tgt});
  return array_of(std::move(values), {links.size(), 2});
}

nb::object log_probs_of(std::vector<float> values) {
  const size_t size = values.size();
  return array_of(std::move(values), {size});
}

/// Returns a value of an option as a configuration holds it.
ConfigNode node_of(const nb::handle& value) {
  if (nb::isinstance<nb::bool_>(value)) return ConfigNode::scalar(nb::cast<bool>(value) ? "true" : "false");
  if (nb::isinstance<nb::str>(value)) return ConfigNode::scalar(nb::cast<std::string>(value));
  if (!nb::isinstance<nb::sequence>(value)) return ConfigNode::scalar(nb::cast<std::string>(nb::str(value)));
  std::vector<ConfigNode> items;
  for (const nb::handle item : nb::borrow<nb::sequence>(value)) items.push_back(node_of(item));
  return ConfigNode::list(std::move(items));
}

std::vector<std::pair<std::string, ConfigNode>> options_of(const nb::dict& options) {
  std::vector<std::pair<std::string, ConfigNode>> all;
  for (const auto& [key, value] : options) all.emplace_back(nb::cast<std::string>(key), node_of(value));
  return all;
}

/// Returns the fields of translator.py's Translation, but for its alternatives.
nb::dict fields_of(const Model& model, Translated& line, size_t index, bool is_aligned) {
  Translation& translation = line.line.translations[index];
  nb::dict fields;
  fields["text"] = translation.text;
  fields["score"] = translation.score;
  fields["log_prob"] = translation.log_prob;
  if (!line.src.empty()) translation.tokens.push_back(kEos);
  fields["tokens"] = pieces_of(model.tgt(), translation.tokens);
  fields["token_log_probs"] = log_probs_of(std::move(translation.token_log_probs));
  fields["src_tokens"] = pieces_of(model.src(), line.src);
  fields["alignment"] = is_aligned ? links_of(translation.alignment) : nb::none();
  fields["attention"] = line.cross.empty() ? nb::none() : array_of(std::move(line.cross[index]));
  fields["is_truncated"] = translation.is_truncated;
  fields["is_cropped"] = line.line.is_cropped;
  fields["unknown_ratio"] = line.line.unknown_ratio;
  return fields;
}

nb::list translate(const Model& model, const std::vector<std::pair<std::string, std::string>>& texts, const nb::dict& options,
                   const std::string& alignment, bool attention, uint64_t seed) {
  TranslateRequest request = {.texts = {}, .options = options_of(options), .attention = attention, .seed = seed};
  for (const auto& [text, prefix] : texts) request.texts.push_back({text, prefix});
  if (alignment == "word") request.alignment = AlignmentLevel::kWord;
  if (alignment == "subword") request.alignment = AlignmentLevel::kPiece;
  std::vector<Translated> lines = computed([&](const Look& look) { return model.translate(request, look); });
  nb::list result;
  for (Translated& line : lines) {
    nb::list translations;
    for (size_t i = 0; i < line.line.translations.size(); ++i) translations.append(fields_of(model, line, i, !alignment.empty()));
    result.append(nb::make_tuple(translations, line.line.has_unknown_prefix, line.line.is_prefix_cropped));
  }
  return result;
}

nb::list force(const Model& model, const std::vector<std::pair<std::string, std::string>>& pairs, bool attention) {
  std::vector<ForcedPair> forced =
      computed([&](const Look& look) { return model.force(pairs, attention ? Forced::kAllSites : Forced::kLogProbs, look); });
  nb::list result;
  for (ForcedPair& pair : forced) {
    nb::dict fields;
    fields["src_tokens"] = pieces_of(model.src(), pair.src);
    fields["tokens"] = pieces_of(model.tgt(), pair.tgt);
    fields["token_log_probs"] = log_probs_of(std::move(pair.log_probs));
    if (attention) {
      fields["encoder_self"] = array_of(std::move(pair.encoder_self));
      fields["decoder_self"] = array_of(std::move(pair.decoder_self));
      fields["cross"] = array_of(std::move(pair.cross));
    }
    result.append(fields);
  }
  return result;
}

nb::list encode(const Model& model, const std::vector<std::string>& texts) {
  std::vector<std::vector<float>> states = computed([&](const Look& look) { return model.encode(texts, look); });
  const auto d_model = static_cast<size_t>(model.options().model.d_model);
  nb::list result;
  for (std::vector<float>& of_text : states) {
    const size_t tokens = of_text.size() / d_model;
    result.append(array_of(std::move(of_text), {tokens, d_model}));
  }
  return result;
}

nb::dict about(const Model& model) {
  const Options& options = model.options();
  nb::dict facts;
  facts["src_lang"] = options.data.src_lang;
  facts["tgt_lang"] = options.data.tgt_lang;
  facts["encoder_layers"] = options.model.encoder_layers;
  facts["decoder_layers"] = options.model.decoder_layers;
  facts["num_heads"] = options.model.num_heads;
  facts["d_model"] = options.model.d_model;
  return facts;
}

/// Makes an error of lacuna_nmt.errors that of Python.
void set_error(const char* name, const std::string& text) {
  PyErr_SetString(nb::module_::import_("lacuna_nmt.errors").attr(name).ptr(), printable(text).c_str());
}

void translate_error(const std::exception_ptr& thrown, void* /*unused*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const CheckpointError& error) {
    set_error("CheckpointError", error.what());
  } catch (const DataError& error) {
    set_error("DataError", error.what());
  } catch (const MachineError& error) {
    set_error("MachineError", error.what());
  } catch (const Error& error) {
    set_error("ConfigError", error.what());
  } catch (const c10::Error& error) {
    if (!is_out_of_memory(error)) return set_error("MachineError", std::string("LibTorch: ") + error.what_without_backtrace());
    PyErr_SetString(PyExc_MemoryError, error.what_without_backtrace());
  } catch (const std::filesystem::filesystem_error& error) {
    set_error("MachineError", error.path1().string() + ": " + error.code().message());
  }
}

/// Gives a line of the log to Python's logger "lacuna_nmt".
void log_to_python(LogLevel level, const std::string& line) {
  const nb::gil_scoped_acquire lock;
  try {
    const char* const method = level == LogLevel::kInfo ? "info" : level == LogLevel::kWarning ? "warning" : "error";
    nb::module_::import_("logging").attr("getLogger")("lacuna_nmt").attr(method)("%s", line);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("the log of lacuna_nmt");
  }
}

}  // namespace

NB_MODULE(_lacuna, module) {
  nb::register_exception_translator(translate_error);
  send_log_to(log_to_python);
  nb::class_<Model>(module, "Model")
      .def(
          "__init__",
          [](Model* self, const std::string& path, const std::string& device, const nb::dict& options, int64_t threads) {
            const auto given = options_of(options);
            computed([&](const Look& /*look*/) { return new (self) Model(path, device, given, threads); });
          },
          "path"_a, "device"_a, "options"_a, "threads"_a)
      .def("translate", translate, "texts"_a, "options"_a, "alignment"_a, "attention"_a, "seed"_a)
      .def("force", force, "pairs"_a, "attention"_a)
      .def("encode", encode, "texts"_a)
      .def(
          "tokenize",
          [](const Model& self, const std::string& text, bool is_src) { return self.pieces(text, is_src ? Side::kSrc : Side::kTgt); },
          "text"_a, "is_src"_a)
      .def("about", about);
}

}  // namespace lacuna::python
