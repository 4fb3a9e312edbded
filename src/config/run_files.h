#pragma once

/// Names of files in the folder of a run (key `run`). For the names of checkpoints see checkpoint/run_folder.h.
namespace lacuna::run_files {

inline constexpr char kConfig[] = "config.yaml";  ///< resolved; each checkpoint has one too
inline constexpr char kLog[] = "train.log";
inline constexpr char kMetrics[] = "metrics.jsonl";
inline constexpr char kTensorboard[] = "tensorboard";
inline constexpr char kCache[] = "cache";              ///< token ids, unless data.cache names another folder
inline constexpr char kRejects[] = "rejects.tsv";      ///< lines of the corpora that do not train (data.bad_lines)
inline constexpr char kValid[] = "valid";              ///< translations of the validation sets ...
inline constexpr char kTest[] = "test";                ///< ... and of the test sets
inline constexpr char kBadBatch[] = "bad_batch.json";  ///< the sentence pairs of the update that ended a run (train/diagnosis.h)
inline constexpr char kLock[] = ".lock";               ///< held by the process that works in the folder
inline constexpr char kAveraged[] = "averaged";        ///< a checkpoint; the next two are links to one
inline constexpr char kBest[] = "best";
inline constexpr char kLast[] = "last";

/// Vocabularies, in the run folder and in checkpoints: one for both sides, or one for each.
inline constexpr char kSpmModel[] = "spm.model";
inline constexpr char kSrcSpmModel[] = "spm.src.model";
inline constexpr char kTgtSpmModel[] = "spm.tgt.model";
inline constexpr const char* kSpmModels[] = {kSpmModel, kSrcSpmModel, kTgtSpmModel};
/// Suffix of the note that says what such a model was trained on.
inline constexpr char kTrainingNote[] = ".training";

/// Files of checkpoints; checkpoint/checkpoint.h lists the others.
inline constexpr char kWeights[] = "model.safetensors";
inline constexpr char kTrainerJson[] = "trainer.json";

}  // namespace lacuna::run_files
