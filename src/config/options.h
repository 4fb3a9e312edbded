#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/activation.h"
#include "base/precision.h"
#include "config/config_node.h"
#include "config/describe.h"

/// Every option of a run, each declared once: name, default, range, meaning. Structs mirror the sections of a YAML file.
namespace lacuna {

/// One parallel corpus: two files, line by line, or one, `tsv`, with a column for each side. Plain text, gzip or zstd.
/// A score of each pair in a column of a corpus, and the lowest with which a pair trains.
struct ScoreColumn {
  int64_t column = 0;
  double at_least = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("column", self.column, lacuna::at_least(0), "column of the score, counted from 1; 0 = none");
    visit("at_least", self.at_least, any(), "pairs with a lower score are left out");
  }
};

struct CorpusOptions {
  static constexpr const char* kForm = "{src: FILE, tgt: FILE} or {tsv: FILE}";

  std::string name = {};  // default: the source file's name without its ending
  std::string src = {};
  std::string tgt = {};
  std::string tsv = {};
  std::vector<int64_t> columns = {1, 2};
  ScoreColumn min_score = {};
  std::string links = {};
  int64_t links_column = 0;
  bool stream = false;
  int64_t shuffle_lines = 100'000;
  bool skip_consumed = true;
  std::string src_prefix = {};
  double weight = 1;

  /// True if the words of pairs are linked, for guided alignment.
  bool has_links() const { return !links.empty() || links_column > 0; }
  /// Returns the files of text with a description of each: {"train.de", "source text"}.
  std::vector<std::pair<std::string, std::string>> files() const;
  /// Names the files: "train.de and train.en", "train.tsv".
  std::string files_text(const char* between = " and ") const;
  /// Names the place of a side's lines: "train.de", "train.tsv, column 1".
  std::string src_text() const;
  std::string tgt_text() const;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, any(), "name in logs, metrics and file names; empty = the source file's name without its ending");
    visit("src", self.src, any(), "source text, one sentence a line, plain, gzip or zstd");
    visit("tgt", self.tgt, any(), "target text, one sentence a line, plain, gzip or zstd");
    visit("tsv", self.tsv, any(),
          "one file in place of src and tgt, plain or packed: columns with a tab between them, a pair in each line");
    visit("columns", self.columns, at_least(1), "which columns of tsv are source and target, counted from 1; others are ignored");
    visit("min_score", self.min_score, any(), "leave pairs with a low score in a column of tsv out: {column: 3, at_least: 0.5}");
    visit("links", self.links, any(),
          "training: file of word alignments for train.guided_alignment, a line a pair, plain or packed: 0-0 1-2 links source and target "
          "words, which spaces separate, counted from 0; `lacuna align` writes it");
    visit("links_column", self.links_column, lacuna::at_least(0), "training: the column of tsv that has them in place of a file; 0 = none");
    visit("stream", self.stream, any(),
          "tsv is a pipe, \"-\" for standard input, that is read once, as it comes, and ends training with its end; the only training "
          "corpus");
    visit("shuffle_lines", self.shuffle_lines, between(1, 100'000'000),
          "stream: lines that are read and shuffled at a time; each such block counts as an epoch");
    visit(
        "skip_consumed", self.skip_consumed, any(),
        "stream: a run that goes on passes over the lines that it has trained on, as they come again; false = what feeds the pipe goes on "
        "by itself");
    visit("src_prefix", self.src_prefix, any(),
          "text before every source line of this corpus that is not blank, with a space between, such as <bt> or <2de>; a SentencePiece "
          "model cuts it as any text: data.spm_symbols keeps a tag whole");
    visit("weight", self.weight, more_than(0), "how often a sentence of this corpus is drawn, relative to the others; 1 = once an epoch");
  }
};

inline constexpr int64_t kMostLayers = 1000;  ///< limit for encoder and decoder; a file with more is damaged or hostile

enum class Tokenizer { kSentencePiece, kNone };
enum class SubwordType { kUnigram, kBpe };
enum class LongLines { kSkip, kCrop, kError };
enum class OnBadLine { kStop, kSkip };

/// SentencePiece's rules of normalization, by their names.
inline Choices<std::string> normalizations() {
  Choices<std::string> rules;
  for (const char* const name : {"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"}) rules.names.emplace_back(name, name);
  return rules;
}

struct DataOptions {
  std::string src_lang, tgt_lang;
  std::vector<CorpusOptions> train, valid, test;
  Tokenizer tokenizer = Tokenizer::kSentencePiece;
  std::string spm_model, src_spm_model, tgt_spm_model;
  std::string vocab, src_vocab, tgt_vocab;
  int64_t vocab_size = 8000;
  bool shared_vocab = true;
  SubwordType spm_type = SubwordType::kUnigram;
  double character_coverage = 1.0;
  int64_t spm_sample_lines = 2000000;
  std::vector<std::string> spm_symbols;
  bool spm_byte_fallback = false;
  std::string src_normalization = "nmt_nfkc", tgt_normalization = "identity";
  double spm_alpha = 0;
  int64_t spm_nbest = 64;
  int64_t max_length = 256;
  LongLines long_lines = LongLines::kSkip;
  double max_length_ratio = 0;
  OnBadLine bad_lines = OnBadLine::kStop;
  std::string cache;

  /// Returns the training corpus that is a stream; null if there is none.
  const CorpusOptions* stream() const;
  /// True if SentencePiece models are to be trained, because none are named.
  bool trains_vocabularies() const { return tokenizer == Tokenizer::kSentencePiece && spm_model.empty() && src_spm_model.empty(); }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("src_lang", self.src_lang, any(), "source language code (de)");
    visit("tgt_lang", self.tgt_lang, any(), "target language code (en): chooses sacreBLEU's tokenizer");
    visit("train", self.train, any(), "training corpora, one or a list: each of two files, src and tgt, or of one, tsv");
    visit("valid", self.valid, any(), "validation sets, given as train is; the first decides early stopping and the best checkpoints");
    visit("test", self.test, any(), "test sets, given as train is: scored when training ends, never used to choose anything");
    visit("tokenizer", self.tokenizer, choices<Tokenizer>({{"sentencepiece", Tokenizer::kSentencePiece}, {"none", Tokenizer::kNone}}),
          "none = the text is tokenized already: split at spaces, looked up in `vocab`");
    visit("spm_model", self.spm_model, any(), "SentencePiece model for both sides; empty = train one from the training corpora");
    visit("src_spm_model", self.src_spm_model, any(), "SentencePiece model of the source side, with tgt_spm_model in place of spm_model");
    visit("tgt_spm_model", self.tgt_spm_model, any(), "SentencePiece model of the target side");
    visit("vocab", self.vocab, any(), "vocabulary file for `tokenizer: none`, one token a line, for both sides");
    visit("src_vocab", self.src_vocab, any(), "vocabulary file of the source side, with tgt_vocab in place of vocab");
    visit("tgt_vocab", self.tgt_vocab, any(), "vocabulary file of the target side");
    visit("vocab_size", self.vocab_size, at_least(16), "pieces of a SentencePiece model that is trained here");
    visit("shared_vocab", self.shared_vocab, any(), "one vocabulary for both sides; false = one for each");
    visit("spm_type", self.spm_type, choices<SubwordType>({{"unigram", SubwordType::kUnigram}, {"bpe", SubwordType::kBpe}}),
          "kind of SentencePiece model that is trained here");
    visit("character_coverage", self.character_coverage, between(0.9, 1),
          "share of characters the vocabulary covers, training one needs 0.98 at least; 0.9995 for Chinese or Japanese");
    visit("spm_sample_lines", self.spm_sample_lines, at_least(1),
          "lines a SentencePiece model is trained on, drawn evenly from the corpora");
    visit("spm_symbols", self.spm_symbols, any(),
          "pieces that a SentencePiece model trained here has whatever the text, each always whole: tags such as <bt>, <2de>");
    visit("spm_byte_fallback", self.spm_byte_fallback, any(),
          "characters that a SentencePiece model trained here does not cover are spelled in bytes, which take 256 of its pieces");
    visit("src_normalization", self.src_normalization, normalizations(),
          "how a SentencePiece model that is trained here changes source text before it reads it, by SentencePiece's names: nfkc = one "
          "form for characters that mean the same (wide letters, ligatures, fractions), nmt_nfkc = spaces and control characters too, "
          "..._cf = lower case too, identity = not at all");
    visit("tgt_normalization", self.tgt_normalization, normalizations(),
          "the same for target text, prefixes and texts to score; what is not identity changes what the model learns to write");
    visit("spm_alpha", self.spm_alpha, between(0, 1),
          "subword sampling in training: smoothing of the n-best draw (unigram) or merge dropout (bpe); 0 = always the best segmentation");
    visit("spm_nbest", self.spm_nbest, between(2, 1024), "segmentations a draw chooses from (unigram); SentencePiece knows 1024 at most");
    visit("max_length", self.max_length, at_least(1), "longest sentence in pieces on either side, end of sentence not counted");
    visit("long", self.long_lines,
          choices<LongLines>({{"skip", LongLines::kSkip}, {"crop", LongLines::kCrop}, {"error", LongLines::kError}}),
          "what to do with longer sentences in training");
    visit("max_length_ratio", self.max_length_ratio, at_least(0),
          "pairs of which one side has more than this many times the other's pieces do not train, as those of wrong lines; 0 = any do");
    visit(
        "bad_lines", self.bad_lines, choices<OnBadLine>({{"stop", OnBadLine::kStop}, {"skip", OnBadLine::kSkip}}),
        "lines of training corpora that are not UTF-8, have NUL bytes, more than 1 MiB or another number of columns: an error, or left out "
        "with their partner, counted, and listed in rejects.tsv of the run folder");
    visit("cache", self.cache, any(), "folder for token ids; empty = `cache` in the run folder");
  }
};

enum class NormPlace { kPre, kPost };
enum class NormType { kLayer, kRms };
enum class Positions { kSinusoidal, kLearned, kRope, kNone };
enum class PositionLayout { kInterleaved, kConcatenated };
enum class PositionSpacing { kPaper, kTensor2Tensor };
enum class DecoderStart { kToken, kZero };
enum class TieEmbeddings { kNone, kDecoder, kAll };

struct ModelOptions {
  std::string preset;
  int64_t d_model = 256;
  int64_t num_heads = 4;
  int64_t d_ff = 1024;
  int64_t encoder_d_ff = 0, decoder_d_ff = 0;
  int64_t encoder_layers = 3;
  int64_t decoder_layers = 3;
  NormPlace norm = NormPlace::kPre;
  NormType norm_type = NormType::kLayer;
  double norm_epsilon = 0;
  Positions positions = Positions::kSinusoidal;
  PositionLayout position_layout = PositionLayout::kInterleaved;
  PositionSpacing position_spacing = PositionSpacing::kPaper;
  int64_t position_start = 0;
  int64_t max_positions = 1024;
  DecoderStart decoder_start = DecoderStart::kToken;
  TieEmbeddings tie_embeddings = TieEmbeddings::kAll;
  bool output_bias = false;
  Activation activation = Activation::kRelu;
  double dropout = 0.1;
  double attention_dropout = 0;
  double activation_dropout = 0;
  double attention_init_gain = 0.7071;
  ConfigNode attention;

  int64_t encoder_ff() const { return encoder_d_ff > 0 ? encoder_d_ff : d_ff; }
  int64_t decoder_ff() const { return decoder_d_ff > 0 ? decoder_d_ff : d_ff; }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("preset", self.preset, any(),
          "sizes to start from (d_model/num_heads/d_ff, layers of each side): tiny 128/4/512, 2; small 256/4/1024, 3; iwslt 512/4/1024, 6; "
          "base 512/8/2048, 6; big 1024/16/4096, 6; keys beside it override");
    visit("d_model", self.d_model, at_least(1), "width of the residual stream");
    visit("num_heads", self.num_heads, at_least(1), "attention heads; must divide d_model");
    visit("d_ff", self.d_ff, at_least(1), "inner width of the feed-forward layers");
    visit("encoder_d_ff", self.encoder_d_ff, at_least(0), "d_ff of the encoder; 0 = d_ff");
    visit("decoder_d_ff", self.decoder_d_ff, at_least(0), "d_ff of the decoder; 0 = d_ff");
    visit("encoder_layers", self.encoder_layers, between(1, kMostLayers), "layers of the encoder");
    visit("decoder_layers", self.decoder_layers, between(1, kMostLayers), "layers of the decoder");
    visit("norm", self.norm, choices<NormPlace>({{"pre", NormPlace::kPre}, {"post", NormPlace::kPost}}),
          "where the residual stream is normalized: before each sub-layer (and once at the end), or after each");
    visit("norm_type", self.norm_type, choices<NormType>({{"layer", NormType::kLayer}, {"rms", NormType::kRms}}), "LayerNorm or RMSNorm");
    visit("norm_epsilon", self.norm_epsilon, between(0, 0.1),
          "what a norm adds to the variance, or to the mean square, before it takes the root; 0 = 1e-5 for LayerNorm, 1e-6 for RMSNorm. "
          "Marian's is 1e-6");
    visit("positions", self.positions,
          choices<Positions>({{"sinusoidal", Positions::kSinusoidal},
                              {"learned", Positions::kLearned},
                              {"rope", Positions::kRope},
                              {"none", Positions::kNone}}),
          "how a token's position is told to the model: added to its embedding, sinusoids or learned vectors, or by rope, which turns "
          "queries and keys of self-attention (Su et al. 2021)");
    visit("position_layout", self.position_layout,
          choices<PositionLayout>({{"interleaved", PositionLayout::kInterleaved}, {"concatenated", PositionLayout::kConcatenated}}),
          "sinusoidal: sin and cos in turn as in the paper, or all sines first; rope: neighbouring features are turned together as in the "
          "paper, or those half a head apart");
    visit("position_spacing", self.position_spacing,
          choices<PositionSpacing>({{"paper", PositionSpacing::kPaper}, {"tensor2tensor", PositionSpacing::kTensor2Tensor}}),
          "sinusoidal only: frequency i of D/2 is 10000^(-i / (D/2)) as in the paper, or 10000^(-i / (D/2 - 1)) as in Tensor2Tensor, "
          "Marian and M2M100");
    visit("position_start", self.position_start, between(0, 1024), "sinusoidal only: position of a sentence's first token; M2M100's is 2");
    visit("max_positions", self.max_positions, at_least(1), "learned positions only: size of the table");
    visit("decoder_start", self.decoder_start, choices<DecoderStart>({{"token", DecoderStart::kToken}, {"zero", DecoderStart::kZero}}),
          "what stands before the first target token: the embedding of bos, or as in Marian zeros, to which the position is added");
    visit("tie_embeddings", self.tie_embeddings,
          choices<TieEmbeddings>({{"none", TieEmbeddings::kNone}, {"decoder", TieEmbeddings::kDecoder}, {"all", TieEmbeddings::kAll}}),
          "which matrices are one: decoder = target embedding and output, all = source embedding too");
    visit("output_bias", self.output_bias, any(), "whether the output projection has a bias, a learned number for each target token");
    visit("activation", self.activation,
          choices<Activation>(
              {{"relu", Activation::kRelu}, {"gelu", Activation::kGelu}, {"swish", Activation::kSwish}, {"swiglu", Activation::kSwiglu}}),
          "activation of the feed-forward layers: max(x, 0), x Phi(x), x sigmoid(x), or swish(x) y with two products of d_ff each");
    visit("dropout", self.dropout, at_least_below(0, 1),
          "dropout of embeddings and of every sub-layer's output, as in fairseq and Marian (OpenNMT-py's is activation_dropout too)");
    visit("attention_dropout", self.attention_dropout, at_least_below(0, 1), "dropout of attention weights");
    visit("activation_dropout", self.activation_dropout, at_least_below(0, 1), "dropout between the two feed-forward matrices");
    visit("attention_init_gain", self.attention_init_gain, between(0.001, 10),
          "first values of query, key and value weights, beside Xavier's (fairseq's: 1 / sqrt(2)); with smaller ones scores begin closer "
          "together, and rows of sparse attention with more of their keys");
    visit("attention", self.attention, any(), "attention of every layer and site: default, encoder_self, decoder_self, cross");
  }
};

enum class OptimizerType { kAdam, kAdamW };
enum class Schedule { kInverseSqrt, kNoam, kLinear, kCosine, kPlateau, kConstant };
enum class ExchangeType { kFp32, kBf16 };
enum class ValidMetric { kLoss, kPerplexity, kBleu, kChrf };

/// Cross attention of the decoder whose weights link words.
struct AlignmentSource {
  int layer = -1;  ///< -1 = none
  int head = -1;   ///< -1 = the average of all
  bool operator==(const AlignmentSource&) const = default;
};

/// Training of one head of cross attention to attend as words are linked, where training corpora have links.
struct GuidedAlignmentOptions {
  double weight = 0.1;
  IntOrAuto layer;
  int64_t head = 0;

  /// Returns the head that is guided in a decoder of so many layers.
  AlignmentSource guided(int64_t decoder_layers) const {
    return {static_cast<int>(layer.value_or(std::max<int64_t>(0, decoder_layers - 2))), static_cast<int>(head)};
  }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("weight", self.weight, at_least(0),
          "times the alignment loss of a linked target token is added to the loss, where a corpus of data.train has links; 0 = never");
    visit("layer", self.layer, at_least(0), "decoder layer whose cross attention is guided; auto = the last but one");
    visit("head", self.head, at_least(0), "head of that layer");
  }
};

struct TrainOptions {
  IntOrAuto batch_tokens{4096};
  int64_t update_freq = 1;
  ExchangeType exchange = ExchangeType::kFp32;
  int64_t rank_timeout = 60;
  OptimizerType optimizer = OptimizerType::kAdam;
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  double weight_decay = 0;
  double lr = 5e-4;
  Schedule schedule = Schedule::kInverseSqrt;
  IntOrAuto warmup_steps;
  double min_lr = 0;
  int64_t decay_steps = 0;
  double plateau_factor = 0.5;
  int64_t plateau_patience = 2;
  double label_smoothing = 0.1;
  GuidedAlignmentOptions guided_alignment;
  double clip_norm = 1;
  double ema_decay = 0;
  int64_t max_bad_updates = 20;
  Precision precision = Precision::kAuto;
  int64_t max_steps = 0, max_epochs = 0;
  double max_hours = 0;
  int64_t valid_every = 1000, save_every = 1000, log_every = 100;
  bool valid_translate = true;
  int64_t valid_beam_size = 5;
  ValidMetric metric = ValidMetric::kBleu;
  IntOrAuto patience;
  double min_improvement = 0;
  int64_t min_steps = 0;
  int64_t keep_last = 3, keep_best = 3;
  int64_t average_last = 0;
  int64_t num_samples = 3;
  std::string init_from;
  std::vector<std::string> reset;
  bool overwrite = false;

  /// Returns true if the schedule falls until a given update, and so needs one.
  bool schedule_needs_end() const { return schedule == Schedule::kLinear || schedule == Schedule::kCosine; }
  /// Returns the update at which the schedule ends; 0 if it has no end, or needs one and has none.
  int64_t schedule_end() const {
    if (!schedule_needs_end()) return 0;
    return decay_steps > 0 ? decay_steps : max_steps;
  }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("batch_tokens", self.batch_tokens, at_least(1),
          "tokens of a batch on either side, at most, but one sentence at least; auto = as many as the memory holds");
    visit("update_freq", self.update_freq, at_least(1), "batches of each rank whose gradients are summed before an update");
    visit("exchange", self.exchange, choices<ExchangeType>({{"fp32", ExchangeType::kFp32}, {"bf16", ExchangeType::kBf16}}),
          "what gradients are sent as between ranks; bf16 takes half the time on a slow network, and rounds");
    visit("rank_timeout", self.rank_timeout, between(1, 86400), "seconds without a sign of life after which a rank counts as lost");
    visit("optimizer", self.optimizer, choices<OptimizerType>({{"adam", OptimizerType::kAdam}, {"adamw", OptimizerType::kAdamW}}),
          "update rule");
    visit("beta1", self.beta1, at_least_below(0, 1), "Adam's decay of the gradient's mean");
    visit("beta2", self.beta2, at_least_below(0, 1), "Adam's decay of the gradient's square");
    visit("epsilon", self.epsilon, more_than(0), "Adam's epsilon");
    visit("weight_decay", self.weight_decay, at_least(0), "adam: L2 added to the gradient; adamw: decoupled, which fairseq calls adam");
    visit("lr", self.lr, more_than(0), "peak learning rate (noam: a factor)");
    visit("schedule", self.schedule,
          choices<Schedule>({{"inverse_sqrt", Schedule::kInverseSqrt},
                             {"noam", Schedule::kNoam},
                             {"linear", Schedule::kLinear},
                             {"cosine", Schedule::kCosine},
                             {"plateau", Schedule::kPlateau},
                             {"constant", Schedule::kConstant}}),
          "how the learning rate falls after the warm-up");
    visit("warmup_steps", self.warmup_steps, at_least(0),
          "updates over which the learning rate rises linearly from 0; auto = 4000, but at most 10 epochs and a tenth of the run");
    visit("min_lr", self.min_lr, at_least(0), "the learning rate never falls below this after the warm-up");
    visit("decay_steps", self.decay_steps, at_least(0), "linear and cosine: the update that reaches min_lr; 0 = max_steps");
    visit("plateau_factor", self.plateau_factor, between(0.01, 1), "plateau: factor at each validation that is due for one");
    visit("plateau_patience", self.plateau_patience, at_least(1), "plateau: validations without a better score before the factor applies");
    visit("label_smoothing", self.label_smoothing, at_least_below(0, 1), "mass taken from the right token and spread over the vocabulary");
    visit("guided_alignment", self.guided_alignment, any(), "training of a head of cross attention by links between words");
    visit("clip_norm", self.clip_norm, at_least(0), "gradients are scaled down to this norm; 0 = never");
    visit("ema_decay", self.ema_decay, at_least_below(0, 1),
          "exponential moving average of the weights, used to validate, average and translate; 0 = off");
    visit("max_bad_updates", self.max_bad_updates, at_least(1),
          "updates in a row left out because loss or gradient is not finite, after which training goes back to the newest good checkpoint "
          "with half the learning rate, or ends if it has done so before");
    visit("precision", self.precision,
          choices<Precision>(
              {{"auto", Precision::kAuto}, {"fp32", Precision::kFp32}, {"bf16x3", Precision::kBf16x3}, {"bf16", Precision::kBf16}}),
          "precision of the factors of matrix products in training (parameters and sums are fp32); bf16x3 = the sum of two bf16 each, "
          "about five digits, on processors with tiles (AMX), fp32 elsewhere; auto = bf16 on a GPU and on processors that multiply it "
          "faster (with AMX, and with AVX512-BF16 on AMD's), else fp32");
    visit("max_steps", self.max_steps, at_least(0), "updates after which training ends; 0 = no limit");
    visit("max_epochs", self.max_epochs, at_least(0), "passes over the data after which training ends; 0 = no limit");
    visit("max_hours", self.max_hours, at_least(0), "hours of training after which it ends; 0 = no limit");
    visit("valid_every", self.valid_every, at_least(0), "updates between validations; 0 = at the end of each epoch");
    visit("save_every", self.save_every, at_least(0), "updates between checkpoints; 0 = at the end of each epoch");
    visit("log_every", self.log_every, at_least(1),
          "updates between lines of the log; one more where max_steps, max_epochs or max_hours ends training");
    visit("valid_translate", self.valid_translate, any(), "validate by translating and sacreBLEU too, not by the loss alone");
    visit("valid_beam_size", self.valid_beam_size, between(1, 10000), "beam size of the translations that validate");
    visit(
        "metric", self.metric,
        choices<ValidMetric>(
            {{"bleu", ValidMetric::kBleu}, {"chrf", ValidMetric::kChrf}, {"loss", ValidMetric::kLoss}, {"ppl", ValidMetric::kPerplexity}}),
        "what the best checkpoint, early stopping and the plateau schedule look at");
    visit("patience", self.patience, at_least(0),
          "validations without a better score before training ends; 0 = never; auto = 10 where there is a validation set and none of "
          "max_steps, "
          "max_epochs and max_hours ends training, else 0");
    visit("min_improvement", self.min_improvement, at_least(0), "a score is better only if by more than this");
    visit("min_steps", self.min_steps, at_least(0), "early stopping does not act before this update");
    visit("keep_last", self.keep_last, at_least(1), "newest checkpoints kept of those saved on schedule; average_last if that is more");
    visit("keep_best", self.keep_best, at_least(0), "best checkpoints kept, by metric");
    visit("average_last", self.average_last, at_least(0),
          "when training ends, average the last so many checkpoints into `averaged`; 0 = none");
    visit("num_samples", self.num_samples, at_least(0), "translations shown in the log at each validation");
    visit("init_from", self.init_from, any(),
          "checkpoint that training goes on from: weights, optimizer, step, data position and best score, but for what reset names; "
          "model.attention may be another, of which what is learned beside the checkpoint's weights is drawn anew");
    visit("reset", self.reset, any(),
          "parts of init_from that start anew: optimizer (weights are then the moving average, where there is one), lr, data, best");
    visit("overwrite", self.overwrite, any(),
          "start anew in a run folder that holds a run of another configuration, which goes once the new one is known to start");
  }
};

enum class LengthPenalty { kPow, kGnmt, kNone };
enum class Sampling { kNone, kFull, kTopK, kTopP };
enum class Guard { kNone, kFlag, kRetry };

/// What a translation's measures (search/guard.h) may be before it is flagged.
struct GuardLimits {
  double min_length_ratio = 0.4;
  double max_length_ratio = 2.5;
  double max_loop = 0.25;
  double max_unattended = 0.75;
  double max_null_rate = 0.5;
  double min_token_log_prob = -2.5;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("min_length_ratio", self.min_length_ratio, between(0.001, 0.999),
          "tokens of the translation for each token of its source, at least");
    visit("max_length_ratio", self.max_length_ratio, at_least(1.001), "the same, at most");
    visit("max_loop", self.max_loop, between(0.001, 1),
          "share of tokens that repeat what stands directly before them, less that of the source, at most; 1 = any");
    visit("max_unattended", self.max_unattended, between(0.001, 1),
          "share of source tokens that cross attention leaves nearly unseen, at most; 1 = any");
    visit("max_null_rate", self.max_null_rate, between(0.001, 1),
          "share of tokens at which cross attention attends to nothing, at most; 1 = any");
    visit("min_token_log_prob", self.min_token_log_prob, between(-1000, -0.001), "mean log-probability of a token in nats, at least");
  }
};

struct TranslateOptions {
  int64_t beam_size = 5;
  int64_t n_best = 1;
  LengthPenalty length_penalty_type = LengthPenalty::kPow;
  double length_penalty = 1;
  double max_length_ratio = 2;
  int64_t max_length = 256;
  int64_t min_length = 0;
  int64_t no_repeat_ngram_size = 0;
  double repetition_penalty = 1;
  std::vector<std::string> block_tokens;
  bool allow_unk = false;
  Sampling sampling = Sampling::kNone;
  int64_t sample_k = 10;
  double sample_p = 0.9;
  double temperature = 1;
  int64_t batch_tokens = 3000;
  Precision precision = Precision::kFp32;
  std::string shortlist;
  std::string joiner;
  Guard guard = Guard::kNone;
  GuardLimits guard_limits;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("beam_size", self.beam_size, between(1, 10000), "hypotheses kept at each step; 1 = greedy");
    visit("n_best", self.n_best, between(1, 10000), "translations given for each sentence; at most beam_size, unless they are sampled");
    visit("length_penalty_type", self.length_penalty_type,
          choices<LengthPenalty>({{"pow", LengthPenalty::kPow}, {"gnmt", LengthPenalty::kGnmt}, {"none", LengthPenalty::kNone}}),
          "a hypothesis of n tokens is ranked by log-probability / n^a (pow) or / ((5+n)/6)^a (gnmt)");
    visit("length_penalty", self.length_penalty, between(0, 100),
          "power a of the length by which hypotheses are ranked (length_penalty_type); 0 = plain log-probability");
    visit("max_length_ratio", self.max_length_ratio, more_than(0),
          "a translation has at most this many tokens for each source token, plus 10 and its prefix, or min_length if that is more");
    visit("max_length", self.max_length, at_least(1), "a translation has at most this many tokens, the end of the sentence counted");
    visit("min_length", self.min_length, at_least(0), "a translation has at least this many tokens, the end of the sentence counted");
    visit("no_repeat_ngram_size", self.no_repeat_ngram_size, at_least(0), "no n-gram of this size comes twice in a translation; 0 = off");
    visit("repetition_penalty", self.repetition_penalty, more_than(0),
          "log-probabilities of tokens already there are multiplied by this; 1 = off");
    visit("block_tokens", self.block_tokens, any(), "pieces that never come in a translation");
    visit("allow_unk", self.allow_unk, any(), "let the unknown token come in a translation");
    visit("sampling", self.sampling,
          choices<Sampling>({{"none", Sampling::kNone}, {"full", Sampling::kFull}, {"top_k", Sampling::kTopK}, {"top_p", Sampling::kTopP}}),
          "draw tokens instead of searching for the best");
    visit("sample_k", self.sample_k, at_least(1), "top_k: draw from so many best tokens");
    visit("sample_p", self.sample_p, between(0.001, 1), "top_p: draw from the fewest tokens with this much probability");
    visit("temperature", self.temperature, more_than(0), "divides logits before the draw");
    visit("batch_tokens", self.batch_tokens, at_least(1),
          "source tokens translated at a time by each thread, fewer where a sentence has more than 8 hypotheses; where several threads "
          "translate, each takes 1024 at most");
    visit("precision", self.precision,
          choices<Precision>(
              {{"auto", Precision::kAuto}, {"fp32", Precision::kFp32}, {"bf16", Precision::kBf16}, {"int8", Precision::kInt8}}),
          "what `lacuna translate` rounds weights and activations to in matrix products on the CPU (sums are fp32): "
          "int8 = bytes with a scale for each output and each token; auto = bf16 where the processor multiplies it "
          "faster, else fp32. bf16 and int8 round embeddings too. On a GPU: fp32, or bf16, which leaves embeddings as they are");
    visit("shortlist", self.shortlist, any(),
          "file of `lacuna shortlist`: `lacuna translate` weighs only what may translate a sentence; empty = the whole vocabulary");
    visit("joiner", self.joiner, any(),
          "for text that was cut into pieces before (data.tokenizer: none): what a piece ends with that the next one belongs to, \"@@\" of "
          "subword-nmt. Translations have whole words then, and are scored against references with whole words; prefixes come in pieces, "
          "and `align` and `analyze` link the joined words; empty = pieces stay");
    visit("guard", self.guard, choices<Guard>({{"none", Guard::kNone}, {"flag", Guard::kFlag}, {"retry", Guard::kRetry}}),
          "against hallucinations of `lacuna translate`: flag = measure each translation and say where one exceeds a limit; retry = search "
          "again, without repetitions, where a flagged one repeats itself, and keep the better");
    visit("guard_limits", self.guard_limits, any(), "what a translation may be before it is flagged");
  }
};

/// A whole configuration.
struct Options {
  std::string run;
  uint64_t seed_value() const { return static_cast<uint64_t>(seed); }
  int64_t seed = 1;
  std::string device = "cpu";
  int64_t threads = 0;
  std::string sacrebleu;
  DataOptions data;
  ModelOptions model;
  TrainOptions train;
  TranslateOptions translate;

  /// True if training guides a head of cross attention: a training corpus has links, and they have weight.
  bool is_guided() const;
  /// Returns what links words by default: the head that training guides, else the average over heads of the last layer but one.
  AlignmentSource alignment_source() const;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("run", self.run, any(), "run folder: everything that training writes");
    visit("seed", self.seed, at_least(0), "seed of every random decision");
    visit("device", self.device, any(), "cpu, cuda or cuda:N");
    visit("threads", self.threads, between(0, 1024), "threads of the CPU; 0 = OMP_NUM_THREADS, or all cores that the process may use");
    visit("sacrebleu", self.sacrebleu, any(), "command that starts sacreBLEU; empty = look for it");
    visit("data", self.data, any(), "corpora and vocabularies");
    visit("model", self.model, any(), "the Transformer");
    visit("train", self.train, any(), "training");
    visit("translate", self.translate, any(), "search");
  }
};

}  // namespace lacuna
