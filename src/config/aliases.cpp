#include "config/aliases.h"

#include <algorithm>
#include <string_view>

#include "base/log.h"

namespace lacuna {
namespace {

struct Alias {
  std::string_view section, theirs, ours;
};

/// What the other toolkits call the same thing: section, their name, ours.
constexpr Alias kAliases[] = {
    {"data", "dev", "valid"},
    {"data", "src_subword_model", "src_spm_model"},
    {"data", "tgt_subword_model", "tgt_spm_model"},
    {"data", "sentencepiece_model", "spm_model"},
    {"data", "src_vocab_size", "vocab_size"},
    {"data", "voc_limit", "vocab_size"},
    {"data", "num_words", "vocab_size"},
    {"data", "share_vocab", "shared_vocab"},
    {"data", "joined_dictionary", "shared_vocab"},
    {"data", "sentencepiece_alphas", "spm_alpha"},
    {"data", "src_subword_alpha", "spm_alpha"},
    {"data", "src_subword_nbest", "spm_nbest"},
    {"data", "user_defined_symbols", "spm_symbols"},
    {"data", "byte_fallback", "spm_byte_fallback"},
    {"data", "src_seq_length", "max_length"},
    {"data", "max_seq_len", "max_length"},
    {"data", "src_tgt_ratio", "max_length_ratio"},
    {"model", "dim_emb", "d_model"},
    {"model", "hidden_size", "d_model"},
    {"model", "embed_dim", "d_model"},
    {"model", "embedding_dim", "d_model"},
    {"model", "embedding_size", "d_model"},
    {"model", "word_vec_size", "d_model"},
    {"model", "transformer_model_size", "d_model"},
    {"model", "transformer_dim_ffn", "d_ff"},
    {"model", "transformer_ff", "d_ff"},
    {"model", "ff_size", "d_ff"},
    {"model", "ffn_embed_dim", "d_ff"},
    {"model", "transformer_feed_forward_num_hidden", "d_ff"},
    {"model", "transformer_heads", "num_heads"},
    {"model", "heads", "num_heads"},
    {"model", "attention_heads", "num_heads"},
    {"model", "transformer_attention_heads", "num_heads"},
    {"model", "enc_depth", "encoder_layers"},
    {"model", "dec_depth", "decoder_layers"},
    {"model", "enc_layers", "encoder_layers"},
    {"model", "dec_layers", "decoder_layers"},
    {"model", "layer_norm", "norm"},
    {"model", "transformer_dropout", "dropout"},
    {"model", "transformer_dropout_attention", "attention_dropout"},
    {"model", "transformer_dropout_ffn", "activation_dropout"},
    {"model", "transformer_dropout_act", "activation_dropout"},
    {"model", "relu_dropout", "activation_dropout"},
    {"model", "transformer_dropout_prepost", "dropout"},
    {"model", "activation_fn", "activation"},
    {"train", "max_tokens", "batch_tokens"},
    {"train", "mini_batch_words", "batch_tokens"},
    {"train", "optimizer_delay", "update_freq"},
    {"train", "accum_count", "update_freq"},
    {"train", "batch_multiplier", "update_freq"},
    {"train", "update_interval", "update_freq"},
    {"train", "learn_rate", "lr"},
    {"train", "learning_rate", "lr"},
    {"train", "lr_scheduler", "schedule"},
    {"train", "decay_method", "schedule"},
    {"train", "scheduling", "schedule"},
    {"train", "lr_warmup", "warmup_steps"},
    {"train", "warmup_updates", "warmup_steps"},
    {"train", "learning_rate_warmup", "warmup_steps"},
    {"train", "max_grad_norm", "clip_norm"},
    {"train", "clip_grad_norm", "clip_norm"},
    {"train", "gradient_clipping_threshold", "clip_norm"},
    {"train", "compute_dtype", "precision"},
    {"train", "train_steps", "max_steps"},
    {"train", "updates", "max_steps"},
    {"train", "max_update", "max_steps"},
    {"train", "max_updates", "max_steps"},
    {"train", "epochs", "max_epochs"},
    {"train", "max_epoch", "max_epochs"},
    {"train", "after_epochs", "max_epochs"},
    {"train", "stop_time_hours", "max_hours"},
    {"train", "valid_freq", "valid_every"},
    {"train", "valid_steps", "valid_every"},
    {"train", "validation_freq", "valid_every"},
    {"train", "validate_interval_updates", "valid_every"},
    {"train", "save_freq", "save_every"},
    {"train", "save_checkpoint_steps", "save_every"},
    {"train", "save_interval_updates", "save_every"},
    {"train", "early_stopping", "patience"},
    {"train", "max_num_checkpoint_not_improved", "patience"},
    {"train", "early_stopping_metric", "metric"},
    {"train", "best_checkpoint_metric", "metric"},
    {"train", "optimized_metric", "metric"},
    {"train", "keep_checkpoint", "keep_last"},
    {"train", "keep_interval_updates", "keep_last"},
    {"train", "keep_last_params", "keep_last"},
    {"train", "keep_best_ckpts", "keep_best"},
    {"train", "keep_best_checkpoints", "keep_best"},
    {"train", "train_from", "init_from"},
    {"train", "load_model", "init_from"},
    {"translate", "beam", "beam_size"},
    {"translate", "nbest", "n_best"},
    {"translate", "nbest_size", "n_best"},
    {"translate", "lenpen", "length_penalty"},
    {"translate", "normalize", "length_penalty"},
    {"translate", "length_penalty_alpha", "length_penalty"},
    {"translate", "block_ngram_repeat", "no_repeat_ngram_size"},
};

/// What the other toolkits say in another way.
struct Refused {
  std::string_view section, theirs, advice;
};
constexpr std::string_view kWeightsAlone =
    "is a checkpoint of which only the weights are taken; say train.init_from plus train.reset: [optimizer, lr, data, best]";
constexpr std::string_view kTying =
    "is not a key here; say model.tie_embeddings: none, decoder (target embedding and output) or all (source embedding too)";
constexpr std::string_view kLayers = "is not a key here; say model.encoder_layers and model.decoder_layers";
constexpr std::string_view kNorm = "is not a key here; say model.norm: pre or post";
constexpr std::string_view kTokens =
    "counts sentences with some toolkits; say train.batch_tokens: tokens of a batch on either side, or auto";
constexpr std::string_view kPrecision = "is not a key here; say train.precision: fp32, bf16, bf16x3 or auto";
constexpr std::string_view kReset = "is not a key here; say train.reset: [optimizer, lr, data, best]";
constexpr std::string_view kPieces = "is not a key here; say translate.joiner: \"@@\", of subword-nmt; SentencePiece joins by itself";
constexpr Refused kRefused[] = {
    {"data", "tsv", "is of a corpus; say data.train: {tsv: FILE}, with columns: [1, 2] for source and target"},
    {"data", "tgt_vocab_size",
     "is not a key here: both sides have data.vocab_size pieces; for others give data.src_spm_model and data.tgt_spm_model"},
    {"model", "tied_embeddings", kTying},
    {"model", "tied_embeddings_all", kTying},
    {"model", "tied_softmax", kTying},
    {"model", "share_embeddings", kTying},
    {"model", "share_all_embeddings", kTying},
    {"model", "share_decoder_embeddings", kTying},
    {"model", "share_decoder_input_output_embed", kTying},
    {"model", "weight_tying_type", kTying},
    {"model", "layers", kLayers},
    {"model", "num_layers", kLayers},
    {"model", "normalize_before", kNorm},
    {"model", "encoder_normalize_before", kNorm},
    {"model", "decoder_normalize_before", kNorm},
    {"model", "encoder_layer_style", kNorm},
    {"model", "transformer_preprocess", kNorm},
    {"model", "transformer_postprocess", kNorm},
    {"model", "max_source_positions", "is not a key here; say data.max_length; with model.positions: learned, by model.max_positions too"},
    {"model", "max_target_positions", "is not a key here; say data.max_length; with model.positions: learned, by model.max_positions too"},
    {"train", "batch_size", kTokens},
    {"train", "batch_type", "is not a key here: batches are counted in tokens; say train.batch_tokens"},
    {"train", "mini_batch", kTokens},
    {"train", "mini_batch_fit", "is not a key here; say train.batch_tokens: auto"},
    {"train", "fp16", kPrecision},
    {"train", "bf16", kPrecision},
    {"train", "amp", kPrecision},
    {"train", "lr_decay_inv_sqrt", "is not a key here; say train.schedule: inverse_sqrt and train.warmup_steps"},
    {"train", "after", "is not a key here; say train.max_steps or train.max_epochs"},
    {"train", "max_seconds", "counts seconds; say train.max_hours"},
    {"train", "valid_metrics", "names several; say train.metric, which chooses: bleu, chrf, loss or ppl"},
    {"train", "early_stopping_criteria", "is not a key here; say train.metric: bleu, chrf, loss or ppl"},
    {"train", "restore_file",
     "is not needed: a run goes on by itself from its last checkpoint; for the weights of another say train.init_from"},
    {"train", "reset_optimizer", kReset},
    {"train", "reset_optim", kReset},
    {"train", "reset_lr_scheduler", kReset},
    {"train", "reset_scheduler", kReset},
    {"train", "reset_dataloader", kReset},
    {"train", "reset_iter_state", kReset},
    {"train", "reset_meters", kReset},
    {"train", "reset_best_ckpt", kReset},
    {"train", "exponential_smoothing", "is a rate, such as 1e-4; Lacuna's key is train.ema_decay: 1 minus that rate, such as 0.9999"},
    {"train", "average_decay", "is a rate, such as 1e-4; Lacuna's key is train.ema_decay: 1 minus that rate, such as 0.9999"},
    {"train", "initial_learning_rate",
     "is the peak times the square root of learning_rate_warmup with Sockeye's inv-sqrt-decay, and the peak with its other schedules; say "
     "train.lr, which is the peak"},
    {"train", "checkpoint_interval", "says when to save and to validate; say train.save_every and train.valid_every"},
    {"train", "keep_last_epochs", "counts epochs; say train.keep_last, with train.save_every: 0 for a checkpoint at each epoch's end"},
    {"train", "pretrained_model", kWeightsAlone},
    {"train", "finetune_from_model", kWeightsAlone},
    {"translate", "remove_bpe", kPieces},
    {"translate", "post_process", kPieces},
    {"data", "remove_bpe", kPieces},
    {"data", "post_process", kPieces},
    {"translate", "beam_alpha",
     "is the power of Wu et al.'s length penalty; say translate.length_penalty_type: gnmt and translate.length_penalty"},
};

std::string snake_case(std::string key) {
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::string our_name(const std::string& section, const std::string& key) {
  std::string theirs = snake_case(key);
  for (const Alias& alias : kAliases)
    if (alias.section == section && alias.theirs == theirs) return std::string(alias.ours);
  return theirs;
}

void rename_in(const std::string& section, ConfigNode& node) {
  std::vector<std::pair<std::string, ConfigNode>> renamed;
  for (const auto& [key, value] : node.entries()) {
    for (const Refused& refused : kRefused)
      if (refused.section == section && refused.theirs == snake_case(key)) value.fail("it " + std::string(refused.advice));
    const std::string ours = our_name(section, key);
    const auto same = [&](const auto& other) { return other.first == ours; };
    if (std::any_of(renamed.begin(), renamed.end(), same) || (ours != key && node.find(ours) != nullptr))
      value.fail("this is another spelling of " + section + "." + ours + ", which is there too; keep one of them");
    if (ours != key) log_warning("{}: {}.{} is taken as {}.{}", value.place().text(), section, key, section, ours);
    renamed.emplace_back(ours, value);
  }
  node = ConfigNode::map(std::move(renamed), node.place());
}

}  // namespace

void rename_known_aliases(ConfigNode& root) {
  for (const char* section : {"data", "model", "train", "translate"}) {
    const ConfigNode* found = root.find(section);
    if (found == nullptr || !found->is_map()) continue;
    ConfigNode renamed = *found;
    rename_in(section, renamed);
    root.set(section, std::move(renamed));
  }
  root.set_path("");
}

}  // namespace lacuna
