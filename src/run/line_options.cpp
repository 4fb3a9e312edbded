#include "run/line_options.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <type_traits>

#include "base/line_reader.h"
#include "config/read_options.h"
#include "run/line_fields.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

enum class Allowed { kAlways, kInSearch, kInSampling, kNever };
enum class Bound { kNone, kAtMost, kAtLeast };  // beside the common value, where lines are bounded

/// Whether lines may have an option of section `translate` for themselves.
struct LineOption {
  const char* key;
  Allowed allowed;
  Bound bound = Bound::kNone;
};

constexpr LineOption kLineOptions[] = {
    {"beam_size", Allowed::kInSearch, Bound::kAtMost},
    {"n_best", Allowed::kAlways},
    {"length_penalty_type", Allowed::kAlways},
    {"length_penalty", Allowed::kAlways},
    {"max_length_ratio", Allowed::kAlways, Bound::kAtMost},
    {"max_length", Allowed::kAlways, Bound::kAtMost},
    {"min_length", Allowed::kAlways},
    {"no_repeat_ngram_size", Allowed::kAlways},
    {"repetition_penalty", Allowed::kAlways, Bound::kAtLeast},  // a small one weighs the whole vocabulary, for the whole batch
    {"block_tokens", Allowed::kNever},
    {"allow_unk", Allowed::kAlways},
    {"sampling", Allowed::kNever},
    {"sample_k", Allowed::kInSampling},
    {"sample_p", Allowed::kInSampling},
    {"temperature", Allowed::kInSampling},
    {"batch_tokens", Allowed::kNever},
    {"precision", Allowed::kNever},
    {"shortlist", Allowed::kNever},
    {"joiner", Allowed::kNever},
    {"guard", Allowed::kNever},
    {"guard_limits", Allowed::kNever},
};

/// Returns a key without what spellings differ by.
std::string letters_of(const std::string& key) {
  std::string letters;
  for (const char c : key)
    if (c != '_' && c != '-' && c != ' ') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

/// A field of a line that is an option.
struct Field {
  const LineOption& option;
  const ordered_json& value;
  const std::string& place;

  [[noreturn]] void fail(const std::string& what) const {
    throw LineError("with wrong JSON", fmt::format("{}: \"{}\" is {}; {}", place, option.key, shown_value(value), what));
  }

  void require_allowed_by_service() const {
    const bool is_of_sampling = option.allowed == Allowed::kInSampling || option.key == std::string("sampling");
    if (is_of_sampling) fail("a service searches by beams and draws nothing: take it out; `lacuna translate --json --sampling full` draws");
    if (option.allowed == Allowed::kNever)
      fail(fmt::format("all requests share it: take it out of the line, or let the service be started with --translate.{}", option.key));
  }

  void require_allowed_by_program(const TranslateOptions& common) const {
    if (option.allowed == Allowed::kNever)
      fail(fmt::format("all lines share it: take it out of the line and start the program with --translate.{}", option.key));
    if (option.allowed == Allowed::kInSearch && common.sampling != Sampling::kNone)
      fail("it changes nothing where translations are drawn (--sampling): take it out; n_best says how many are drawn");
    if (option.allowed == Allowed::kInSampling && common.sampling == Sampling::kNone)
      fail("it changes nothing without --sampling full, top_k or top_p: take it out, or start the program with it");
  }

  template <class T, class Constraint>
  void read(T& target, const Constraint& constraint) const {
    if constexpr (std::is_same_v<T, bool>) {
      if (!value.is_boolean()) fail("expected true or false");
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (!value.is_number()) fail("expected a number");
    } else {
      if (!value.is_string()) fail("expected a word in quotes");
    }
    ConfigNode node = ConfigNode::scalar(value.is_string() ? value.get<std::string>() : value.dump(), {place});
    node.set_path(option.key);
    try {
      options_detail::read_value(node, target, constraint);
    } catch (const ConfigError& error) {
      throw LineError("with wrong JSON", error.what());
    }
  }

  template <class T>
  void require_within_bound(const T& own, const T& common) const {
    if constexpr (std::is_arithmetic_v<T>) {
      const bool is_most = option.bound == Bound::kAtMost;
      if (option.bound == Bound::kNone || (is_most ? own <= common : own >= common)) return;
      fail(fmt::format("expected at {} {:g}, the service's own (--translate.{})", is_most ? "most" : "least", static_cast<double>(common),
                       option.key));
    }
  }
};

/// Returns true for an option that a line of a service may have.
bool is_of_service(const std::string& key) {
  const auto* const option = std::ranges::find(kLineOptions, key, [](const LineOption& one) { return std::string(one.key); });
  return option != std::end(kLineOptions) && (option->allowed == Allowed::kAlways || option->allowed == Allowed::kInSearch);
}

/// Throws LineError for a field that is named almost like an option, which would be passed through in silence.
void require_no_other_spelling(const ordered_json& fields, const std::string& place) {
  for (const auto& [key, value] : fields.items())
    for (const LineOption& option : kLineOptions)
      if (key != option.key && letters_of(key) == letters_of(option.key))
        throw LineError("with wrong JSON", fmt::format("{}: \"{}\" is {}, and no option of a line; did you mean \"{}\"?", place, key,
                                                       shown_value(value), option.key));
}

/// Returns true for the measures of an earlier translation.
bool are_measures(const char* key, const ordered_json& value) {
  return key == std::string("guard") && value.is_object();
}

/// Throws LineError for options that contradict each other.
void require_consistent(const TranslateOptions& own, const LineSettings& settings, const std::string& place) {
  const auto require_at_most = [&](const char* key, int64_t value, const char* most_key, int64_t most, int64_t common_most) {
    if (value <= most) return;
    const bool can_be_raised = !settings.are_bounded || most < common_most;
    throw LineError("with wrong JSON", fmt::format("{}: \"{}\" is {}; expected at most {}, which is {} for this line{}", place, key, value,
                                                   most_key, most, can_be_raised ? ": raise that" : ", the most that the service allows"));
  };
  if (own.sampling == Sampling::kNone) require_at_most("n_best", own.n_best, "beam_size", own.beam_size, settings.common.beam_size);
  require_at_most("min_length", own.min_length, "max_length", own.max_length, settings.common.max_length);
}

}  // namespace

std::shared_ptr<const TranslateOptions> own_options(const ordered_json& fields, const LineSettings& settings, const std::string& place) {
  require_no_other_spelling(fields, place);
  TranslateOptions own = settings.common;
  bool has_own = false;
  const auto read_field = [&](const char* key, auto& value, const auto& constraint, const char* /*meaning*/) {
    using T = std::remove_reference_t<decltype(value)>;
    const auto given = fields.find(key);
    const auto* const option =
        std::ranges::find(kLineOptions, std::string(key), [](const LineOption& one) { return std::string(one.key); });
    if (given == fields.end() || given->is_null() || option == std::end(kLineOptions)) return;
    if (are_measures(key, *given)) return;
    const Field field{*option, *given, place};
    if (settings.are_bounded)
      field.require_allowed_by_service();
    else
      field.require_allowed_by_program(settings.common);
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      const T common = value;
      field.read(value, constraint);
      if (settings.are_bounded) field.require_within_bound(value, common);
      has_own = true;
    }
  };
  TranslateOptions::describe(own, read_field);
  if (!has_own) return nullptr;
  require_consistent(own, settings, place);
  return std::make_shared<const TranslateOptions>(std::move(own));
}

std::vector<std::string> options_taking(const ordered_json& value, const LineSettings& settings) {
  std::vector<std::string> names;
  const TranslateOptions any;
  TranslateOptions::describe(any, [&](const char* key, const auto& target, const auto& constraint, const char* /*meaning*/) {
    using T = std::remove_cvref_t<decltype(target)>;
    bool takes = false;
    if constexpr (std::is_same_v<T, bool>) {
      takes = value.is_boolean();
    } else if constexpr (std::is_arithmetic_v<T>) {
      takes = value.is_number();
    } else if constexpr (std::is_enum_v<T>) {
      takes = value.is_string() && std::ranges::count(options_detail::names_of(constraint), value.get<std::string>()) > 0;
    }
    if (takes && (!settings.are_bounded || is_of_service(key))) names.emplace_back(key);
  });
  return names;
}

}  // namespace lacuna
