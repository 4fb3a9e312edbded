#pragma once

/// Names in the folder of a run (key `run`), for all who write there or read it. `step_N` beside them: checkpoint/run_folder.h.
namespace lacuna::run_files {

inline constexpr char kConfig[] = "config.yaml";  ///< resolved; each checkpoint has one too
inline constexpr char kLog[] = "train.log";
inline constexpr char kMetrics[] = "metrics.jsonl";
inline constexpr char kTensorboard[] = "tensorboard";
inline constexpr char kCache[] = "cache";        ///< token ids, unless data.cache says where
inline constexpr char kValid[] = "valid";        ///< translations of the validation sets ...
inline constexpr char kTest[] = "test";          ///< ... and of the test sets
inline constexpr char kLock[] = ".lock";         ///< held by the process that works in the folder
inline constexpr char kAveraged[] = "averaged";  ///< a checkpoint; the next two are links to one
inline constexpr char kBest[] = "best";
inline constexpr char kLast[] = "last";

/// Vocabularies, here and in checkpoints: that of both sides, or one of each.
inline constexpr char kSpmModel[] = "spm.model";
inline constexpr char kSrcSpmModel[] = "spm.src.model";
inline constexpr char kTgtSpmModel[] = "spm.tgt.model";
inline constexpr const char* kSpmModels[] = {kSpmModel, kSrcSpmModel, kTgtSpmModel};
/// Behind the name of such a model: the note of what it was trained on.
inline constexpr char kTrainingNote[] = ".training";

/// In checkpoints (checkpoint/checkpoint.h says what more is there).
inline constexpr char kWeights[] = "model.safetensors";
inline constexpr char kTrainerJson[] = "trainer.json";

}  // namespace lacuna::run_files
