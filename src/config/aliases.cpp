#include <algorithm>
#include <string_view>

#include "base/log.h"
#include "config/load.h"

namespace lacuna {
namespace {

/// A key of Lacuna and its names in other toolkits, in snake case with spaces between them.
struct Alias {
  std::string_view section, ours, theirs;
};
constexpr Alias kAliases[] = {
    {"data", "valid", "dev"},
    {"data", "src_spm_model", "src_subword_model"},
    {"data", "tgt_spm_model", "tgt_subword_model"},
    {"data", "spm_model", "sentencepiece_model"},
    {"data", "vocab_size", "src_vocab_size voc_limit num_words"},
    {"data", "shared_vocab", "share_vocab joined_dictionary"},
    {"data", "spm_alpha", "sentencepiece_alphas src_subword_alpha"},
    {"data", "spm_nbest", "src_subword_nbest"},
    {"data", "spm_symbols", "user_defined_symbols"},
    {"data", "spm_byte_fallback", "byte_fallback"},
    {"data", "max_length", "src_seq_length max_seq_len"},
    {"data", "max_length_ratio", "src_tgt_ratio"},
    {"model", "d_model", "dim_emb hidden_size embed_dim embedding_dim embedding_size word_vec_size transformer_model_size"},
    {"model", "d_ff", "transformer_dim_ffn transformer_ff ff_size ffn_embed_dim transformer_feed_forward_num_hidden"},
    {"model", "num_heads", "transformer_heads heads attention_heads transformer_attention_heads"},
    {"model", "encoder_layers", "enc_depth enc_layers"},
    {"model", "decoder_layers", "dec_depth dec_layers"},
    {"model", "norm", "layer_norm"},
    {"model", "dropout", "transformer_dropout transformer_dropout_prepost"},
    {"model", "attention_dropout", "transformer_dropout_attention"},
    {"model", "activation_dropout", "transformer_dropout_ffn transformer_dropout_act relu_dropout"},
    {"model", "activation", "activation_fn"},
    {"train", "batch_tokens", "max_tokens mini_batch_words"},
    {"train", "update_freq", "optimizer_delay accum_count batch_multiplier update_interval"},
    {"train", "lr", "learn_rate learning_rate"},
    {"train", "schedule", "lr_scheduler decay_method scheduling"},
    {"train", "warmup_steps", "lr_warmup warmup_updates learning_rate_warmup"},
    {"train", "clip_norm", "max_grad_norm clip_grad_norm gradient_clipping_threshold"},
    {"train", "precision", "compute_dtype"},
    {"train", "max_steps", "train_steps updates max_update max_updates"},
    {"train", "max_epochs", "epochs max_epoch after_epochs"},
    {"train", "max_hours", "stop_time_hours"},
    {"train", "valid_every", "valid_freq valid_steps validation_freq validate_interval_updates"},
    {"train", "save_every", "save_freq save_checkpoint_steps save_interval_updates"},
    {"train", "patience", "early_stopping max_num_checkpoint_not_improved"},
    {"train", "metric", "early_stopping_metric best_checkpoint_metric optimized_metric"},
    {"train", "keep_last", "keep_checkpoint keep_interval_updates keep_last_params"},
    {"train", "keep_best", "keep_best_ckpts keep_best_checkpoints"},
    {"train", "init_from", "train_from load_model"},
    {"translate", "beam_size", "beam"},
    {"translate", "n_best", "nbest nbest_size"},
    {"translate", "length_penalty", "lenpen normalize length_penalty_alpha"},
    {"translate", "no_repeat_ngram_size", "block_ngram_repeat"},
};

/// Keys of other toolkits that differ in meaning, not only in name, and what to write instead. An empty section is the top level.
struct Replacement {
  std::string_view section, theirs, advice;
};
constexpr Replacement kReplacements[] = {
    {"", "train_sets", "use data.train: {src: FILE, tgt: FILE}"},
    {"", "valid_sets", "use data.valid: {src: FILE, tgt: FILE}"},
    {"", "vocabs src_vocab tgt_vocab", "vocabularies are made from the corpus, or named by data.src_spm_model and data.tgt_spm_model"},
    {"", "save_model model_dir", "use run: FOLDER"},
    {"", "training", "the section is train"},
    {"", "testing", "the section is translate"},
    {"data", "tsv", "it belongs to a corpus; use data.train: {tsv: FILE}, with columns: [1, 2] for source and target"},
    {"data", "tgt_vocab_size",
     "both sides have data.vocab_size pieces; for other sizes name models by data.src_spm_model and data.tgt_spm_model"},
    {"data", "remove_bpe post_process", "use translate.joiner: \"@@\" for subword-nmt; SentencePiece joins pieces by itself"},
    {"data", "normalization_rule_name", "use data.src_normalization and data.tgt_normalization"},
    {"model",
     "tied_embeddings tied_embeddings_all tied_softmax share_embeddings share_all_embeddings share_decoder_embeddings "
     "share_decoder_input_output_embed weight_tying_type",
     "use model.tie_embeddings: none, decoder (target embedding and output) or all (source embedding too)"},
    {"model", "layers num_layers", "use model.encoder_layers and model.decoder_layers"},
    {"model", "normalize_before encoder_normalize_before decoder_normalize_before encoder_layer_style", "use model.norm: pre or post"},
    {"train", "batch_size mini_batch batch_type", "batches are counted in tokens; use train.batch_tokens, a number or auto"},
    {"train", "mini_batch_fit", "use train.batch_tokens: auto"},
    {"train", "fp16 bf16 amp", "use train.precision: fp32, bf16, bf16x3 or auto"},
    {"train", "lr_decay_inv_sqrt", "use train.schedule: inverse_sqrt and train.warmup_steps"},
    {"train", "after", "use train.max_steps or train.max_epochs"},
    {"train", "valid_metrics early_stopping_criteria", "use train.metric, which is one of bleu, chrf, loss and ppl"},
    {"train", "restore_file", "a run resumes from its last checkpoint by itself; for the weights of another run use train.init_from"},
    {"train", "reset_optimizer reset_optim reset_lr_scheduler reset_dataloader", "use train.reset: [optimizer, lr, data, best]"},
    {"train", "exponential_smoothing average_decay", "use train.ema_decay, which is 1 minus that rate: 0.9999 for 1e-4"},
    {"train", "initial_learning_rate",
     "use train.lr, the peak; Sockeye's inv-sqrt-decay gives the peak times the square root of learning_rate_warmup"},
    {"train", "checkpoint_interval", "use train.save_every and train.valid_every"},
    {"train", "keep_last_epochs", "it counts epochs; use train.keep_last, with train.save_every: 0 for a checkpoint at each epoch's end"},
    {"train", "pretrained_model finetune_from_model",
     "to take only the weights use train.init_from and train.reset: [optimizer, lr, data, best]"},
    {"translate", "remove_bpe post_process", "use translate.joiner: \"@@\" for subword-nmt; SentencePiece joins pieces by itself"},
    {"translate", "beam_alpha",
     "it is the power of Wu et al.'s length penalty; use translate.length_penalty_type: gnmt and "
     "translate.length_penalty"},
};

constexpr std::string_view kBf16x3Removed =
    "translating in bf16x3 was removed; say fp32, which keeps more digits, or bf16, which is faster (train.precision may be bf16x3)";

bool translates_in_bf16x3(const std::string& section, const std::string& key, const ConfigNode& value) {
  return section == "translate" && key == "precision" && value.is_scalar() && value.text() == "bf16x3";
}

std::string snake_case(std::string key) {
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

/// True if `names`, with spaces between them, contain `name`.
bool contains(std::string_view names, std::string_view name) {
  for (size_t at = names.find(name); at != std::string_view::npos; at = names.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || names[at - 1] == ' ') && (end == names.size() || names[end] == ' ')) return true;
  }
  return false;
}

void refuse_with_advice(const std::string& section, const std::string& key, const ConfigNode& value) {
  for (const Replacement& other : kReplacements)
    if (other.section == section && contains(other.theirs, snake_case(key))) value.fail(std::string(other.advice));
}

/// Throws ConfigError for keys of other toolkits at the top level: Marian and OpenNMT have no sections.
void refuse_foreign_layout(const ConfigNode& root) {
  for (const auto& [key, value] : root.entries()) {
    refuse_with_advice("", key, value);
    for (const Alias& alias : kAliases)
      if (contains(alias.theirs, snake_case(key))) value.fail("use " + std::string(alias.section) + "." + std::string(alias.ours));
  }
  const ConfigNode* const data = root.find("data");
  if (data == nullptr) return;
  for (const auto& [key, value] : data->entries())
    if (value.find("path_src") != nullptr) value.fail("use data.train: [{src: FILE, tgt: FILE}], and data.valid likewise");
}

std::string our_name(const std::string& section, const std::string& key) {
  std::string theirs = snake_case(key);
  for (const Alias& alias : kAliases)
    if (alias.section == section && contains(alias.theirs, theirs)) return std::string(alias.ours);
  return theirs;
}

void rename_in(const std::string& section, ConfigNode& node) {
  std::vector<std::pair<std::string, ConfigNode>> renamed;
  for (const auto& [key, value] : node.entries()) {
    refuse_with_advice(section, key, value);
    if (translates_in_bf16x3(section, key, value)) value.fail(std::string(kBf16x3Removed));
    const std::string ours = our_name(section, key);
    const auto same = [&](const auto& other) { return other.first == ours; };
    if (std::any_of(renamed.begin(), renamed.end(), same) || (ours != key && node.find(ours) != nullptr))
      value.fail("this is another spelling of " + section + "." + ours + ", which is given too; keep one of them");
    if (ours != key) log_warning("{}: {}.{} is read as {}.{}", value.place().text(), section, key, section, ours);
    renamed.emplace_back(ours, value);
  }
  node = ConfigNode::map(std::move(renamed), node.place());
}

}  // namespace

void rename_known_aliases(ConfigNode& root) {
  refuse_foreign_layout(root);
  for (const char* section : {"data", "model", "train", "translate"}) {
    const ConfigNode* found = root.find(section);
    if (found == nullptr || !found->is_map()) continue;
    ConfigNode renamed = *found;
    rename_in(section, renamed);
    root.set(section, std::move(renamed));
  }
  root.set_path("");
}

void replace_removed_settings(ConfigNode& root) {
  const ConfigNode* found = root.find("translate");
  if (found == nullptr || !found->is_map()) return;
  ConfigNode translate = *found;
  const ConfigNode* precision = translate.find("precision");
  if (precision == nullptr || !translates_in_bf16x3("translate", "precision", *precision)) return;
  log_warning("{}: translating in bf16x3 was removed: fp32 takes its place", precision->place().text());
  translate.set("precision", ConfigNode::scalar("fp32", precision->place()));
  root.set("translate", std::move(translate));
}

}  // namespace lacuna
