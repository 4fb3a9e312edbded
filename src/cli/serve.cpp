#include "attention/registry.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"
#include "serve/run_service.h"

namespace lacuna {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kMost = 1'000'000'000;  // of any of the limits

struct ServeFlags {
  std::vector<std::string> models;
  serve::ServiceSettings settings;
  int64_t cache_mib = 0, most_waiting_kib = 4096, most_body_kib = 1024;
  bool has_no_page = false, splits_not = false;
  flags::KeyFlags keys{option_help<TranslateOptions>("translate.")};
  CommonFlags common;

  void declare(CLI::App& app) {
    settings.listen = "127.0.0.1:5000";
    settings.drain_seconds = 30;
    settings.watch_seconds = 5;
    settings.options.most_characters = 100000;
    settings.limits = {.connections = 2000, .request_seconds = 120, .idle_seconds = 30};
    flags::add_models(app, models,
                      ": one for each pair of languages. They are those of its configuration, unless they stand before it: de-en=PATH");
    app.add_option("--listen", settings.listen, "Address and port; port 0: one that is free")->type_name("ADDRESS:PORT");
    app.add_option(
           "--keys", settings.options.key_file,
           "File of the API keys that are served, one a line; behind a key, characters a minute if they are to be others than --rate")
        ->type_name("FILE");
    app.add_option(
           "--trusted-proxy", settings.limits.trusted_proxies,
           "Address or network (10.0.0.0/8) of a reverse proxy, whose X-Forwarded-For says who the client is; may come several times")
        ->type_name("ADDRESS")
        ->allow_extra_args(false);
    const auto add = [&app](const char* flag, int64_t& value, int64_t least, const char* meaning) {
      app.add_option(flag, value, meaning)->check(whole_number_from(least, kMost));
    };
    add("--rate", settings.options.rate, 0,
        "Characters a minute for each key, or without --keys for each address; 0: as many as they like");
    add("--max-characters", settings.options.most_characters, 1, "Characters of a request");
    add("--max-body-kib", most_body_kib, 1, "KiB of a request's body");
    add("--max-connections", settings.limits.connections, 1, "Open connections");
    add("--max-queue-kib", most_waiting_kib, 1, "KiB of text that may wait for each model");
    add("--max-seconds", settings.limits.request_seconds, 1, "Seconds in which a request is translated, or given up");
    add("--idle-seconds", settings.limits.idle_seconds, 1, "Seconds in which a client sends a request, or reads its answer");
    add("--cache-mib", cache_mib, 0, "MiB of translations that are kept, to be given again for the same line; 0: none");
    add("--drain-seconds", settings.drain_seconds, 0, "Seconds after SIGTERM in which requests that were taken are answered");
    add("--watch-seconds", settings.watch_seconds, 0, "Seconds between looks whether a model was replaced, to load the new one; 0: never");
    app.add_flag("--no-split", splits_not, "Take each line for a sentence, unless a request asks otherwise (\"split\": true)");
    app.add_flag("--no-page", has_no_page, "Leave the web page out");
    for (const auto& [flag, key] : {std::pair("-b,--beam-size", "beam_size"),
                                    {"--length-penalty", "length_penalty"},
                                    {"--max-length-ratio", "max_length_ratio"},
                                    {"--max-length", "max_length"},
                                    {"--batch-tokens", "batch_tokens"},
                                    {"--precision", "precision"},
                                    {"--shortlist", "shortlist"}})
      keys.add(app, flag, std::string("translate.") + key);
    keys.add(app, "--guard", "translate.guard", /*is_of_model=*/true, "flag");
    app.set_help_all_flag("--help-options",
                          "Print every key under `translate` and `model.attention` with its default, range and meaning, and end");
    common.declare_runtime(app);
    app.footer("Every key under `translate` and `model.attention` is a flag too, for all models: --translate.allow_unk true.");
    app.allow_extras();
  }

  std::vector<std::string> overrides(const CLI::App& app) const {
    std::vector<std::string> words = overrides_of(app), given = keys.overrides();
    words.insert(words.end(), given.begin(), given.end());
    return words;
  }
};

/// Throws UsageError for flags by which other services are told where to listen.
void refuse_other_names_of_listen(const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    const std::string flag = word.substr(0, word.find('='));
    if (flag == "--port" || flag == "--host" || flag == "--address" || flag == "--bind")
      throw UsageError(flag +
                       " is not a flag; expected --listen HOST:PORT, such as --listen 127.0.0.1:5000, or 0.0.0.0:5000 for other machines");
  }
}

int run_serve(const std::vector<std::string>& arguments) {
  CommandLine app("Translates for other programs and people, over HTTP.", "lacuna serve");
  ServeFlags flags;
  flags.declare(app);
  refuse_other_names_of_listen(arguments);
  if (!app.read(arguments, search_options_help() + attention_help())) return 0;
  flags.common.apply_log_level();
  serve::ServiceSettings& settings = flags.settings;
  for (const std::string& model : flags.models) settings.places.push_back(serve::parse_place(model));
  settings.loading = {flags.common.prepared_device(), flags.overrides(app), flags.most_waiting_kib * 1024};
  settings.limits.body_bytes = flags.most_body_kib * 1024;
  settings.options.cache_bytes = flags.cache_mib * kMiB;
  settings.options.splits = !flags.splits_not;
  settings.options.has_page = !flags.has_no_page;
  settings.options.logs_requests = !flags.common.quiet;
  serve::run_service(settings);
  return 0;
}

}  // namespace

Verb serve_verb() {
  return {"serve", "answer over HTTP: the APIs of LibreTranslate and DeepL, JSON lines, a web page", run_serve};
}

}  // namespace lacuna
