#include "kernels/rotation.h"

#include <algorithm>
#include <cmath>

#include "kernels/profile.h"
#include "kernels/reference.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kTurnedParts = 2;

/// Turns the features of one head. `sign`: -1 = back.
template <class T, class Stored>
void turn_head(const Stored* from, Stored* to, int64_t pairs, bool is_interleaved, const T* cosines, const T* sines, T sign) {
  const int64_t step = is_interleaved ? 2 : 1, apart = is_interleaved ? 1 : pairs;
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t at = i * step;
    const T a = static_cast<T>(from[at]), b = static_cast<T>(from[at + apart]), c = cosines[i], s = sign * sines[i];
    to[at] = static_cast<Stored>(a * c - b * s);
    to[at + apart] = static_cast<Stored>(a * s + b * c);
  }
}

/// Turns rows of parts * num_heads heads; `to` may be `from`.
template <class T, class Stored>
void turn_rows(const Stored* from, Stored* to, int64_t parts, int64_t num_heads, const Rotation& rotation,
               const std::vector<int32_t>& positions, T sign) {
  const int64_t pairs = rotation.cosines.size(1), d = 2 * pairs, heads = kTurnedParts * num_heads, row_size = parts * num_heads * d;
  const auto *const cosines = rotation.cosines.const_data_ptr<T>(), *const sines = rotation.sines.const_data_ptr<T>();
  for_parts(static_cast<int64_t>(positions.size()), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * row_size, angles = positions[static_cast<size_t>(row)] * pairs;
      for (int64_t head = 0; head < heads; ++head)
        turn_head(from + at + head * d, to + at + head * d, pairs, rotation.is_interleaved, cosines + angles, sines + angles, sign);
      if (to != from) std::copy_n(from + at + heads * d, row_size - heads * d, to + at + heads * d);
    }
  });
}

Tensor turned_by(const Tensor& x, const Rotation& rotation, int sign) {
  Tensor result = at::empty_like(x);
  const auto turn_as = [&]<class T, class Stored>(T factor, Stored /*stored*/) {
    turn_rows<T, Stored>(x.const_data_ptr<Stored>(), result.mutable_data_ptr<Stored>(), x.size(1), x.size(2), rotation, rotation.positions,
                         factor);
  };
  if (x.scalar_type() == at::kDouble) {
    turn_as(static_cast<double>(sign), double());
  } else if (x.scalar_type() == at::kBFloat16) {
    turn_as(static_cast<float>(sign), c10::BFloat16());
  } else {
    turn_as(static_cast<float>(sign), float());
  }
  return result;
}

struct KeptRotation : torch::CustomClassHolder {
  explicit KeptRotation(Rotation kept) : rotation(std::move(kept)) {}
  Rotation rotation;
};

class RotationFunction : public torch::autograd::Function<RotationFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Rotation& rotation) {
    context->saved_data["rotation"] = c10::IValue::make_capsule(c10::make_intrusive<KeptRotation>(rotation));
    return turned_by(x, rotation, 1);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kEmbedding);
    const auto& kept = static_cast<const KeptRotation&>(*context->saved_data["rotation"].toCapsule());
    return {turned_by(gradients[0].contiguous(), kept.rotation, -1), Tensor()};
  }
};

}  // namespace

Rotation rotation_table(int64_t count, int64_t d) {
  Rotation rotation = {at::empty({count, d / 2}, at::kDouble), at::empty({count, d / 2}, at::kDouble), {}};
  auto *cosine = rotation.cosines.mutable_data_ptr<double>(), *sine = rotation.sines.mutable_data_ptr<double>();
  for (int64_t position = 0; position < count; ++position)
    for (int64_t i = 0; i < d / 2; ++i) {
      const double angle = static_cast<double>(position) * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(d));
      *cosine++ = std::cos(angle);
      *sine++ = std::sin(angle);
    }
  return rotation;
}

Tensor turned(const Tensor& x, const Rotation& rotation) {
  const TimedPart timed(ProfilePart::kEmbedding);
  if (!x.is_cpu()) return reference::turned(x, rotation);
  if (!at::GradMode::is_enabled()) return turned_by(x.contiguous(), rotation, 1);
  return RotationFunction::apply(x.contiguous(), rotation);
}

void turn(float* x, int64_t parts, int64_t num_heads, const Rotation& rotation, const std::vector<int32_t>& positions) {
  const TimedPart timed(ProfilePart::kEmbedding);
  turn_rows<float, float>(x, x, parts, num_heads, rotation, positions, 1);
}

}  // namespace lacuna
