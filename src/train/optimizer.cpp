#include "train/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/device.h"
#include "checkpoint/not_finite.h"
#include "kernels/profile.h"
#include "kernels/row_tensors.h"
#include "model/precision.h"
#include "train/adam.h"

namespace lacuna {
namespace {

constexpr char kFirstMoment[] = "adam.first_moment.";
constexpr char kSecondMoment[] = "adam.second_moment.";
constexpr size_t kMainGroup = 0, kAuxiliaryGroup = 1;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> values_of(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

at::ScalarType wire_type(const FlatParameters& parameters, const TrainOptions& options) {
  return options.exchange == ExchangeType::kBf16 ? at::kBFloat16 : parameters.values().scalar_type();
}

}  // namespace

Optimizer::Optimizer(FlatParameters parameters, const TrainOptions& options, const std::vector<ParameterRange>& ranges, Group& group)
    : parameters_(std::move(parameters)), options_(options), group_(group) {
  if (!is_alone()) {
    shard_ = std::make_unique<Shard>(parameters_, group_);
    exchange_ = std::make_unique<GradientExchange>(parameters_, *shard_, wire_type(parameters_, options_));
  }
  bounds_ = bounds_of(ranges);
  const bool multiplies_in_bf16 = factor_precision(options_.precision, device()) == Precision::kBf16;
  if (is_alone() && multiplies_in_bf16 && has_gpu_rows(parameters_.values())) parameters_.keep_rounded();
  const int64_t size = is_alone() ? parameters_.values().numel() : shard_->own_size();
  first_moment_ = at::zeros({size}, parameters_.values().options());
  second_moment_ = at::zeros({size}, parameters_.values().options());
  if (has_ema()) average_ = own_of(parameters_.values());
}

/// Returns a copy of what this rank owns of a whole buffer.
Tensor Optimizer::own_of(const Tensor& whole) const {
  return is_alone() ? whole.clone() : shard_->own_of(whole);
}

std::vector<Optimizer::Bounds> Optimizer::bounds_of(const std::vector<ParameterRange>& ranges) const {
  std::vector<Bounds> bounds;
  for (const auto& [name, lowest, highest] : ranges) {
    const Slice place = parameters_.place_of(name);
    if (is_alone()) bounds.push_back({place, place.begin, lowest, highest});
    for (size_t g = 0; !is_alone() && g < parameters_.groups().size(); ++g)
      for (const Shard::Part& part : shard_->parts(g)) {
        const Slice both = {std::max(place.begin, part.slice.begin), std::min(place.end, part.slice.end)};
        if (both.begin < both.end) bounds.push_back({both, part.own_begin + both.begin - part.slice.begin, lowest, highest});
      }
  }
  return bounds;
}

UpdateResult Optimizer::update(double lr, double gradient_scale, bool with_auxiliary) {
  const GradientSquares own = sum_gradients(with_auxiliary);
  std::vector<GradientSquares> all = {own};
  if (!is_alone()) {
    const std::vector<std::string> of_main = group_.gather_to_all(bytes_of(own[kMainGroup])),
                                   of_auxiliary = group_.gather_to_all(bytes_of(own[kAuxiliaryGroup]));
    all.clear();
    for (size_t rank = 0; rank < of_main.size(); ++rank)
      all.push_back({values_of<double>(of_main[rank]), values_of<double>(of_auxiliary[rank])});
  }
  return apply(lr, gradient_scale, with_auxiliary, all);
}

void Optimizer::set_exchange_overlap(bool overlaps) {
  if (exchange_) exchange_->set_overlap(overlaps);
}

void Optimizer::expect_last_backward(bool is_last) {
  if (exchange_) exchange_->expect_last(is_last);
}

GradientSquares Optimizer::sum_gradients(bool with_auxiliary) {
  const TimedPart timed(ProfilePart::kOptimizer);
  GradientSquares squares;
  if (is_alone()) {
    for (size_t g = 0; g < (with_auxiliary ? 2 : 1); ++g) {
      gradients_[g] = parameters_.gradients(parameters_.groups().at(g));
      squares[g] = squares_of_chunks(gradients_[g]);
    }
    return squares;
  }
  exchange_->finish();
  if (!device().is_cpu()) return squares_on_gpu();
  for (size_t g = 0; g < parameters_.groups().size(); ++g)
    for (const Shard::Part& part : shard_->parts(g)) {
      const std::vector<double> of_part = squares_of_chunks(exchange_->sums(part));
      squares[g].insert(squares[g].end(), of_part.begin(), of_part.end());
    }
  return squares;
}

GradientSquares Optimizer::squares_on_gpu() const {
  std::vector<Tensor> sums = {at::zeros({}, parameters_.values().options().dtype(at::kDouble))};  // that all ranks wait for their losses
  for (size_t g = 0; g < parameters_.groups().size(); ++g)
    for (const Shard::Part& part : shard_->parts(g)) sums.push_back(device_sum_of_squares(exchange_->sums(part), parameters_.values()));
  const Tensor here = on_host(at::stack(sums));
  const double* next = here.const_data_ptr<double>() + 1;
  GradientSquares squares;
  for (size_t g = 0; g < parameters_.groups().size(); ++g)
    for (size_t i = 0; i < shard_->parts(g).size(); ++i) squares[g].push_back(*next++);
  return squares;
}

UpdateResult Optimizer::apply(double lr, double gradient_scale, bool with_auxiliary, const std::vector<GradientSquares>& squares,
                              bool is_loss_finite) {
  const TimedPart timed(ProfilePart::kOptimizer);
  record_ = Tensor();  // the counts are here again
  UpdateResult result = {.gradient_norm = gradient_scale * norm_of(kMainGroup, squares)};
  if (with_auxiliary) result.auxiliary_gradient_norm = gradient_scale * norm_of(kAuxiliaryGroup, squares);
  result.is_finite = std::isfinite(result.gradient_norm) && std::isfinite(result.auxiliary_gradient_norm) && is_loss_finite;
  if (result.is_finite) {
    const AdamRule rule = rule_of(lr, gradient_scale);
    update_group(kMainGroup, rule.step(++num_updates_, result.gradient_norm));
    if (with_auxiliary) update_group(kAuxiliaryGroup, rule.step(++num_auxiliary_updates_, result.auxiliary_gradient_norm));
    finish_update(with_auxiliary);
  }
  clear_gradients();
  return result;
}

void Optimizer::clear_gradients() {
  gradients_ = {};
  for (const FlatParameters::Range& group : parameters_.groups()) parameters_.clear_gradients(group);
}

/// Adds the squares in the order of the buffer, so that the norm does not depend on the number of ranks.
double Optimizer::norm_of(size_t parameter_group, const std::vector<GradientSquares>& squares) const {
  double sum = 0;
  if (is_alone()) {
    for (const double part : squares.front()[parameter_group]) sum += part;
    return std::sqrt(sum);
  }
  const Slices& slices = shard_->slices();
  std::vector<size_t> next(squares.size());
  for (size_t bucket = slices.first_bucket(parameter_group); bucket < slices.first_bucket(parameter_group + 1); ++bucket)
    for (int rank = 0; rank < group_.size(); ++rank) {
      const auto r = static_cast<size_t>(rank);
      const int64_t chunks = slices.num_chunks(bucket, rank), sums = device().is_cpu() ? chunks : std::min<int64_t>(chunks, 1);
      for (int64_t i = 0; i < sums; ++i) sum += squares[r][parameter_group].at(next[r]++);
    }
  return std::sqrt(sum);
}

AdamRule Optimizer::rule_of(double lr, double gradient_scale) const {
  return {.lr = lr,
          .gradient_scale = gradient_scale,
          .clip_norm = options_.clip_norm,
          .beta1 = options_.beta1,
          .beta2 = options_.beta2,
          .epsilon = options_.epsilon,
          .weight_decay = options_.weight_decay,
          .decouples = options_.optimizer == OptimizerType::kAdamW,
          .ema_decay = options_.ema_decay};
}

/// Puts the counts of updates where queued updates read and write them.
void Optimizer::prepare_queue() {
  UpdateRecord record = {};
  record.updates[kMainGroup] = num_updates_;
  record.updates[kAuxiliaryGroup] = num_auxiliary_updates_;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&record);
  record_ = tensor_of(std::vector<uint8_t>(bytes, bytes + sizeof(record)), device());
  decisions_ = at::empty({2, sizeof(UpdateDecision)}, record_.options());
}

QueuedUpdate Optimizer::queue(double lr, double gradient_scale, bool with_auxiliary, const Tensor& loss) {
  const TimedPart timed(ProfilePart::kOptimizer);
  if (!record_.defined()) prepare_queue();
  const Tensor& values = parameters_.values();
  auto* const decisions = static_cast<UpdateDecision*>(decisions_.mutable_data_ptr());
  DecisionArgs args = {.rule = rule_of(lr, gradient_scale),
                       .groups = with_auxiliary ? 2 : 1,
                       .squares = {},
                       .loss = loss.const_data_ptr<double>(),
                       .decisions = {decisions, decisions + 1},
                       .record = static_cast<UpdateRecord*>(record_.mutable_data_ptr())};
  std::array<Tensor, 2> squares;
  for (size_t g = 0; g < static_cast<size_t>(args.groups); ++g) {
    gradients_[g] = parameters_.gradients(parameters_.groups().at(g));
    squares[g] = device_sum_of_squares(gradients_[g], values);
    args.squares[g] = squares[g].const_data_ptr<double>();
  }
  decide_update(args, device());
  for (size_t g = 0; g < static_cast<size_t>(args.groups); ++g) {
    const FlatParameters::Range& range = parameters_.groups()[g];
    parameters_.renew_rounded(range);  // an update that is left out writes nothing
    adam_update({values, first_moment_, second_moment_, average_, parameters_.rounded()}, gradients_[g], args.decisions[g]);
    clamp({range.begin, range.end});
  }
  finish_update(with_auxiliary);
  clear_gradients();
  return QueuedUpdate(record_);
}

UpdateResult Optimizer::note(const UpdateRecord& outcome) {
  num_updates_ = outcome.updates[kMainGroup];
  num_auxiliary_updates_ = outcome.updates[kAuxiliaryGroup];
  return {outcome.norms[kMainGroup], outcome.norms[kAuxiliaryGroup], outcome.is_finite != 0};
}

/// Tells autograd, and those who read the values in bf16, that the values have changed.
void Optimizer::finish_update(bool with_auxiliary) {
  parameters_.mark_changed();
  for (size_t g = 0; g < (with_auxiliary ? 2 : 1); ++g) parameters_.note_rounded(parameters_.groups()[g]);
}

void Optimizer::update_group(size_t parameter_group, const AdamStep& step) {
  const Tensor& values = parameters_.values();
  const FlatParameters::Range& range = parameters_.groups()[parameter_group];
  if (is_alone()) {
    adam_update({values, first_moment_, second_moment_, average_, parameters_.rounded()}, gradients_[parameter_group], step);
    return clamp({range.begin, range.end});
  }
  shard_->share(values, parameter_group, [&](const Shard::Part& part) {
    const auto own = [&](const Tensor& buffer) { return buffer.defined() ? buffer.slice(0, part.own_begin, part.own_end()) : buffer; };
    adam_update({values.slice(0, part.slice.begin, part.slice.end), own(first_moment_), own(second_moment_), own(average_)},
                exchange_->sums(part), step);
    clamp(part.slice);
  });
}

/// Brings elements that were updated back into their ranges, and their average too.
void Optimizer::clamp(const Slice& updated) {
  for (const auto& [slice, own_begin, lowest, highest] : bounds_) {
    if (slice.begin < updated.begin || slice.begin >= updated.end) continue;
    parameters_.values().narrow(0, slice.begin, slice.size()).clamp_(lowest, highest);
    if (has_ema()) average_.narrow(0, own_begin, slice.size()).clamp_(lowest, highest);
    const Tensor values = parameters_.values().narrow(0, slice.begin, slice.size());
    if (parameters_.rounded().defined()) parameters_.rounded().narrow(0, slice.begin, slice.size()).copy_(values);
  }
}

void Optimizer::reset_ema() {
  if (has_ema()) average_.copy_(is_alone() ? parameters_.values() : shard_->own_of(parameters_.values()));
}

void Optimizer::swap_ema() {
  if (!has_ema()) return;
  const Tensor& values = parameters_.values();
  if (is_alone()) {
    const Tensor weights = values.clone();
    values.copy_(average_);
    average_.copy_(weights);
  } else if (kept_weights_.defined()) {
    values.copy_(kept_weights_);
    kept_weights_ = Tensor();
  } else {
    kept_weights_ = values.clone();
    shard_->copy_own(average_, values);
    shard_->share(values);
  }
  parameters_.mark_changed();
}

std::string Optimizer::not_finite() const {
  const std::pair<const char*, Tensor> buffers[] = {
      {"", parameters_.values()}, {"the moving average of ", average_}, {kFirstMoment, first_moment_}, {kSecondMoment, second_moment_}};
  for (const auto& [prefix, buffer] : buffers) {
    if (!buffer.defined()) continue;
    const bool is_found = count_not_finite(buffer) > 0;
    if (is_alone()) {
      if (is_found) return find_not_finite(parameters_.views(buffer, prefix))->text();
      continue;
    }
    const std::vector<std::string> found = group_.gather_to_all(is_found ? "1" : "");
    if (std::all_of(found.begin(), found.end(), [](const std::string& one) { return one.empty(); })) continue;
    const NamedTensors whole = buffer.is_same(parameters_.values()) ? parameters_.views(buffer) : named(buffer, prefix);
    const auto first = group_.is_first() ? find_not_finite(whole) : std::nullopt;
    return group_.broadcast(first ? first->text() : "");
  }
  return "";
}

/// Returns the whole tensors of a buffer of which this rank has its elements: with several ranks at rank 0 alone.
NamedTensors Optimizer::named(const Tensor& own, const std::string& prefix) const {
  const Tensor whole = is_alone() ? own : shard_->gather_at_first(own);
  return whole.defined() ? parameters_.views(whole, prefix) : NamedTensors();
}

NamedTensors Optimizer::ema_weights() const {
  return has_ema() ? named(average_, "") : NamedTensors();
}

NamedTensors Optimizer::state() const {
  NamedTensors state = named(first_moment_, kFirstMoment);
  state.merge(named(second_moment_, kSecondMoment));
  return state;
}

void Optimizer::load(const Tensor& own, const NamedTensors& tensors, const std::string& prefix, const std::string& place) const {
  if (is_alone()) return parameters_.load(own, tensors, prefix, place);
  const Tensor whole = parameters_.new_buffer();
  parameters_.load(whole, tensors, prefix, place);
  own.copy_(shard_->own_of(whole));
}

void Optimizer::load_state(const NamedTensors& state, int64_t num_updates, const std::string& place, int64_t num_auxiliary_updates) {
  load(first_moment_, state, kFirstMoment, place);
  load(second_moment_, state, kSecondMoment, place);
  num_updates_ = num_updates;
  num_auxiliary_updates_ = num_auxiliary_updates;
  record_ = Tensor();
}

void Optimizer::share_weights() {
  if (is_alone()) return;
  shard_->spread(parameters_.values());
  parameters_.mark_changed();
}

}  // namespace lacuna
