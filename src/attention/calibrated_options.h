#pragma once

#include "attention/rows/row.h"
#include "config/config_node.h"
#include "config/describe.h"
#include "config/option_help.h"

namespace lacuna {

/// Options of the attention type `calibrated`, which puts a mask model on top of another type, its base. What they
/// mean, and the code that reads them, is in model/calibrated/.
struct CalibratedOptions {
  static constexpr const char* kName = "calibrated";
  static constexpr const char* kPaper = "ACL 2021.acl-long.103";
  enum class Combine { kFixed, kAnneal, kGate };

  Combine combine = Combine::kGate;
  double lambda = 1;
  int64_t anneal_steps = 100000;
  double mask_penalty = 1;
  double mask_loss_cap = 10;
  int64_t mask_every = 1;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("combine", self.combine, choices<Combine>({{"fixed", Combine::kFixed}, {"anneal", Combine::kAnneal}, {"gate", Combine::kGate}}),
          "how weights and calibrated weights become one: a fixed sum, one that moves with the steps, or a learned gate");
    visit("lambda", self.lambda, at_least(0), "fixed only: factor of the calibrated weights");
    visit("anneal_steps", self.anneal_steps, at_least(1), "anneal only: steps after which the plain weights' share has fallen to 1/e");
    visit("mask_penalty", self.mask_penalty, at_least(0), "pull of the mask towards 1, where nothing is perturbed");
    visit("mask_loss_cap", self.mask_loss_cap, more_than(0), "nats a token: the mask gains nothing by a translation loss beyond");
    visit("mask_every", self.mask_every, at_least(1), "the mask is trained in every so many-th step");
  }

  /// Reads the keys of `node`, without type, base, pattern and norm. Throws ConfigError.
  static CalibratedOptions read(const ConfigNode& node) {
    const auto options = read_options<CalibratedOptions>(node);
    const ConfigNode *lambda = node.find("lambda"), *steps = node.find("anneal_steps");
    if (lambda != nullptr && options.combine != Combine::kFixed) lambda->fail("has a meaning with `combine: fixed` only");
    if (steps != nullptr && options.combine != Combine::kAnneal) steps->fail("has a meaning with `combine: anneal` only");
    return options;
  }
  /// Throws ConfigError at `node`, the base, if its rows do not go with the options.
  void check_base(const ConfigNode& node, const types::Info& base) const {
    if (combine == Combine::kFixed && !base.rows_sum_to_one)
      node.fail(
          "its rows need not sum to one, and may be all zero, which `combine: fixed` would turn into even weights; use combine: anneal or "
          "gate, or a base whose rows sum to one");
  }
  /// The options as a map, defaults included, without those that `combine` does not use.
  ConfigNode write() const {
    ConfigNode written = write_options(*this);
    if (combine != Combine::kFixed) written.erase("lambda");
    if (combine != Combine::kAnneal) written.erase("anneal_steps");
    return written;
  }
};

}  // namespace lacuna
