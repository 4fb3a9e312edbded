#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/attention.h"
#include "attention/calibrated_options.h"
#include "attention/registry.h"
#include "config/yaml.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

AttentionPlan plan_of(const std::string& yaml) {
  ConfigNode attention = yaml.empty() ? ConfigNode() : parse_yaml(yaml, "test.yaml");
  attention.set_path("model.attention");
  return resolve_attention(attention, 2, 3, 4);
}

std::string error_of(const std::string& yaml) {
  try {
    plan_of(yaml);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string yaml_of(const AttentionChoice& choice) {
  return choice.type->description().to_yaml();
}

TEST(AttentionPlan, IsSoftmaxEverywhereIfNothingIsSaid) {
  const AttentionPlan plan = plan_of("");
  EXPECT_EQ(plan.encoder_self.size(), 2u);
  EXPECT_EQ(plan.decoder_self.size(), 3u);
  EXPECT_EQ(plan.cross.size(), 3u);
  for (const auto* site : {&plan.encoder_self, &plan.decoder_self, &plan.cross})
    for (const AttentionChoice& choice : *site) {
      EXPECT_EQ(choice.type->name(), "softmax");
      EXPECT_EQ(choice.norm, "none");
    }
}

TEST(AttentionPlan, TakesDefaultSitesAndLayers) {
  const AttentionPlan plan = plan_of(
      "default: sparsemax\n"
      "encoder_self: {type: rela, norm: {type: rms, gain_init: ones}}\n"
      "cross:\n"
      "  default: {type: topk, k: 3}\n"
      "  layers: {0: softmax, 2: {type: entmax, alpha: 1.3}}\n");
  EXPECT_EQ(plan.encoder_self[1].type->name(), "rela");
  EXPECT_EQ(plan.encoder_self[1].norm, "rms");
  EXPECT_EQ(plan.encoder_self[1].norm_options.find("gain_init")->text(), "ones");
  EXPECT_EQ(plan.decoder_self[0].type->name(), "sparsemax");
  EXPECT_EQ(plan.cross[0].type->name(), "softmax");
  EXPECT_EQ(plan.cross[1].type->name(), "topk");
  EXPECT_THAT(yaml_of(plan.cross[1]), HasSubstr("k: 3"));
  EXPECT_THAT(yaml_of(plan.cross[2]), HasSubstr("alpha: 1.3"));
}

TEST(AttentionPlan, TakesOneChoiceForAll) {
  EXPECT_EQ(plan_of("{type: entmax15, pattern: full}").cross[0].type->name(), "entmax15");
  EXPECT_EQ(resolve_attention(ConfigNode::scalar("rela"), 1, 1, 2).cross[0].norm, "gated_rms");
}

TEST(AttentionPlan, LeavesOtherLayersTheDefaultOfAll) {
  const AttentionPlan plan = plan_of("{default: rela, cross: {layers: {1: softmax}}}");
  EXPECT_EQ(plan.cross[0].type->name(), "rela");
  EXPECT_EQ(plan.cross[1].type->name(), "softmax");
}

TEST(AttentionPlan, OptionsWithoutATypeChangeTheChoiceThatWouldBeThere) {
  const AttentionPlan plan = plan_of(
      "default: {type: topk, k: 3, norm: rms, pattern: {type: local, window: 4}}\n"
      "decoder_self: {pattern: {window: 2}}\n"
      "cross:\n"
      "  default: {pattern: full}\n"
      "  layers: {1: {k: 7}, 2: softmax}\n");
  EXPECT_THAT(yaml_of(plan.decoder_self[0]), AllOf(HasSubstr("k: 3"), HasSubstr("type: local"), HasSubstr("window: 2")));
  EXPECT_EQ(plan.decoder_self[0].norm, "rms");
  EXPECT_THAT(yaml_of(plan.cross[0]), AllOf(HasSubstr("k: 3"), HasSubstr("type: full")));
  EXPECT_THAT(yaml_of(plan.cross[1]), AllOf(HasSubstr("k: 7"), HasSubstr("type: full")));
  EXPECT_EQ(plan.cross[2].type->name(), "softmax");
  EXPECT_EQ(plan.cross[2].norm, "none");
}

TEST(AttentionPlan, RefusesOptionsThatTheInheritedTypeDoesNotHave) {
  EXPECT_THAT(error_of("default: entmax15\ncross: {sparsify: train}"),
              AllOf(HasSubstr("test.yaml:2: model.attention.cross.sparsify is \"train\""),
                    HasSubstr("entmax15 has no options; for sparsify set type: ")));
  EXPECT_THAT(error_of("cross: {default: topk, layers: {0: {alpha: 1.3}}}"), HasSubstr("model.attention.cross.layers.0.alpha"));
  EXPECT_THAT(error_of("cross: {type: rela, slope: 0.2}"),
              HasSubstr("cross.slope is \"0.2\"; has a meaning with `activation: leaky_relu` only"));
  EXPECT_THAT(error_of("cross: {defalt: topk}"),
              HasSubstr("unknown key model.attention.cross.defalt; did you mean model.attention.cross.default?"));
}

TEST(AttentionPlan, SaysInWhichSitesAnotherDiffers) {
  const AttentionPlan plan = plan_of("{default: softmax, cross: {type: topk, k: 3}}");
  EXPECT_EQ(difference(plan, plan_of("{cross: {type: topk, k: 3, sparsify: always}}")).first, "");
  const PlanDifference one = difference(plan, plan_of("{default: softmax, cross: {type: rela, norm: {type: rms, gain_init: ones}}}"));
  EXPECT_EQ(one.first, "cross: {type: topk, k: 3, sparsify: always}");
  EXPECT_EQ(one.second, "cross: {type: rela, activation: relu, norm: {type: rms, gain_init: ones}}");
  const PlanDifference two = difference(plan, plan_of("{encoder_self: {type: softmax, pattern: local}, cross: {layers: {1: sparsemax}}}"));
  EXPECT_EQ(two.first, "encoder_self: softmax, cross: {type: topk, k: 3, sparsify: always}");
  EXPECT_EQ(two.second, "encoder_self: {type: softmax, pattern: {type: local, window: 8}}, cross: {0: softmax, 1: sparsemax, 2: softmax}");
}

TEST(AttentionPlan, SaysWhereNumbersAreLearnedInOtherUnits) {
  const AttentionPlan plan = plan_of("{cross: {type: entmax, alpha: learned}, encoder_self: {layers: {1: {type: span, max_span: 40}}}}");
  EXPECT_EQ(difference_in_units(plan, plan), "");
  EXPECT_EQ(difference_in_units(plan, plan_of("{encoder_self: {type: span, max_span: 20}}")),
            "encoder_self.1: span of max_span 40 and max_span 20");
  EXPECT_EQ(difference_in_units(plan, plan_of("{encoder_self: {type: span, max_span: 40, ramp: 9}, cross: {type: entmax, alpha: 2}}")), "");
  EXPECT_EQ(difference_in_units(plan, plan_of("softmax")), "");
}

TEST(AttentionPlan, SaysWhichTypesThereAre) {
  EXPECT_THAT(error_of("default: softmax\ncross: sparsmax"),
              AllOf(HasSubstr("test.yaml:2"), HasSubstr("model.attention.cross is \"sparsmax\""), HasSubstr("softmax, topk"),
                    HasSubstr("Did you mean \"sparsemax\"?")));
}

TEST(AttentionPlan, SaysWhichSitesThereAre) {
  EXPECT_THAT(error_of("encoder-self: softmax"), HasSubstr("did you mean model.attention.encoder_self?"));
}

/// The path of `key` beside the node at `path`.
std::string sibling(const std::string& path, const std::string& key) {
  return path.substr(0, path.rfind('.') + 1) + key;
}

TEST(AttentionPlan, SaysWhichKeyAMisspeltOneWasMeantFor) {
  for (const auto& [yaml, place, meant] :
       {std::tuple("cros: topk", "model.attention.cros", "cross"), std::tuple("encodr: topk", "model.attention.encodr", "encoder_self"),
        std::tuple("{tpye: topk, k: 4}", "model.attention.tpye", "type"),
        std::tuple("cross: {tpye: topk, k: 4}", "model.attention.cross.tpye", "type"),
        std::tuple("cross: {layers: {0: {tpye: topk}}}", "model.attention.cross.layers.0.tpye", "type"),
        std::tuple("cross: {layrs: {0: topk}}", "model.attention.cross.layrs", "layers"),
        std::tuple("cross: {type: rela, nrom: rms}", "model.attention.cross.nrom", "norm"),
        std::tuple("cross: {type: topk, patern: full}", "model.attention.cross.patern", "pattern"),
        std::tuple("cross: {type: calibrated, bse: topk}", "model.attention.cross.bse", "base"),
        std::tuple("default: {type: topk, cros: rela}", "model.attention.default.cros", "cross")})
    EXPECT_THAT(error_of(yaml),
                StartsWith("test.yaml:1: unknown key " + std::string(place) + "; did you mean " + sibling(place, meant) + "?"))
        << yaml;
}

TEST(AttentionPlan, SaysWhereAKeyBelongsThatStandsAmongATypesOptions) {
  for (const auto& [yaml, place] : {std::tuple("{type: topk, k: 4, cross: rela}", "model.attention.cross"),
                                    std::tuple("default: {type: topk, cross: rela}", "model.attention.default.cross")})
    EXPECT_THAT(error_of(yaml), AllOf(StartsWith("test.yaml:1: " + std::string(place) + " is \"rela\"; cross does not go among"),
                                      HasSubstr("under `default`, and cross beside it"), Not(HasSubstr("Did you mean"))))
        << yaml;
  EXPECT_THAT(
      error_of("{type: topk, default: rela}"),
      AllOf(StartsWith("test.yaml:1: model.attention.default is \"rela\"; default does not go beside `type`"), HasSubstr("keep one")));
  EXPECT_THAT(
      error_of("default: {type: topk, layers: {0: rela}}"),
      AllOf(StartsWith("test.yaml:1: model.attention.default.layers is a map"), HasSubstr("under the `default` of a site, and layers")));
}

TEST(AttentionPlan, RefusesAnOptionThatTheTypeDoesNotHave) {
  EXPECT_THAT(error_of("default: {type: softmax, k: 8}"), HasSubstr("k"));
  EXPECT_THAT(error_of("default: {type: topk, kk: 8}"), AllOf(HasSubstr("kk"), HasSubstr("k, ratio")));
}

TEST(AttentionPlan, RefusesTopkWithoutKeys) {
  EXPECT_THAT(error_of("default: {type: topk, k: 0}"),
              AllOf(HasSubstr("test.yaml:1"), HasSubstr("default.k is \"0\""), HasSubstr("at least 1")));
}

TEST(AttentionPlan, RefusesTopkOptionsOutOfTheirRange) {
  EXPECT_THAT(error_of("default: {type: topk, k: -3}"), AllOf(HasSubstr("default.k is \"-3\""), HasSubstr("at least 1")));
  EXPECT_THAT(error_of("default: {type: topk, k: 2.5}"), AllOf(HasSubstr("default.k is \"2.5\""), HasSubstr("whole number")));
  EXPECT_THAT(error_of("default: {type: topk, ratio: -1}"), AllOf(HasSubstr("default.ratio is \"-1\""), HasSubstr("at least 0")));
  EXPECT_THAT(error_of("default: {type: topk, ratio: 4, floor: 0}"), AllOf(HasSubstr("default.floor is \"0\""), HasSubstr("at least 1")));
  EXPECT_THAT(error_of("default: {type: topk, sparsify: translate}"), AllOf(HasSubstr("default.sparsify"), HasSubstr("always, train")));
}

TEST(AttentionPlan, RefusesTopkWithCountAndRatio) {
  EXPECT_THAT(error_of("default: {type: topk, k: 8, ratio: 4}"), HasSubstr("not both"));
  EXPECT_THAT(error_of("default: {type: topk, floor: 4}"), HasSubstr("ratio"));
  EXPECT_THAT(error_of("default: {type: topk, ratio: 0.5}"), HasSubstr("1 or more"));
}

TEST(AttentionPlan, RefusesAlphaOutsideItsRange) {
  EXPECT_THAT(error_of("default: {type: entmax, alpha: 2.5}"), HasSubstr("alpha"));
  EXPECT_THAT(error_of("default: {type: entmax, alpha: 0.99}"), HasSubstr("alpha is \"0.99\""));
  EXPECT_THAT(error_of("default: {type: entmax, alpha: 1.005}"), HasSubstr("1 exactly, 1.01 to 2, or learned"));
  for (const char* alpha : {"1", "1.01", "2", "learned"})
    EXPECT_EQ(error_of(std::string("default: {type: entmax, alpha: ") + alpha + "}"), "no error");
}

TEST(AttentionPlan, TakesALearnedAlpha) {
  const AttentionPlan plan = plan_of("{default: {type: entmax, alpha: learned}, cross: {type: entmax, alpha: learned, alpha_init: 1.2}}");
  EXPECT_THAT(yaml_of(plan.encoder_self[0]), AllOf(HasSubstr("alpha: learned"), HasSubstr("alpha_init: 1.5")));
  EXPECT_THAT(yaml_of(plan.cross[0]), HasSubstr("alpha_init: 1.2"));
}

TEST(AttentionPlan, RefusesAnAlphaThatIsNeitherNumberNorLearned) {
  EXPECT_THAT(error_of("default: {type: entmax, alpha: learnt}"),
              AllOf(HasSubstr("test.yaml:1"), HasSubstr("default.alpha is \"learnt\""), HasSubstr("or learned")));
}

TEST(AttentionPlan, RefusesAnAlphaInitThatALearnedAlphaCannotHave) {
  for (const char* init : {"1", "1.01", "2", "2.5"})
    EXPECT_THAT(error_of(std::string("default: {type: entmax, alpha: learned, alpha_init: ") + init + "}"),
                AllOf(HasSubstr("default.alpha_init"), HasSubstr("1.01"), HasSubstr("2")));
  EXPECT_THAT(error_of("default: {type: entmax, alpha: 1.3, alpha_init: 1.2}"), HasSubstr("`alpha: learned` only"));
}

TEST(AttentionPlan, RefusesASpanOnCrossAttention) {
  EXPECT_THAT(error_of("encoder_self: softmax\ncross: span"),
              AllOf(HasSubstr("test.yaml:2"), HasSubstr("model.attention.cross"), HasSubstr("distance"), HasSubstr("`cross: softmax`")));
  EXPECT_THAT(error_of("default: span"), HasSubstr("distance"));
  EXPECT_EQ(error_of("{default: span, cross: softmax}"), "no error");
}

TEST(AttentionPlan, RefusesSpansOutsideTheirRange) {
  const auto span_error = [](const std::string& options) { return error_of("encoder_self: {type: span, " + options + "}"); };
  EXPECT_THAT(span_error("span_init: 65"), AllOf(HasSubstr("span_init is \"65\""), HasSubstr("at most max_span")));
  EXPECT_THAT(span_error("max_span: 4"), AllOf(HasSubstr("max_span is \"4\""), HasSubstr("beyond span_init")));
  for (const char* init : {"0", "64"})
    EXPECT_THAT(span_error(std::string("span: dynamic, span_init: ") + init), AllOf(HasSubstr("span_init"), HasSubstr("never reaches")));
  EXPECT_THAT(span_error("max_span: 0"), HasSubstr("from 1 to 65536"));
  EXPECT_THAT(span_error("ramp: 1"), AllOf(HasSubstr("ramp is \"1\""), HasSubstr("from 2")));
  EXPECT_THAT(span_error("penalty: -1"), HasSubstr("at least 0"));
  EXPECT_THAT(span_error("span: per_heads"), HasSubstr("Did you mean \"per_head\"?"));
  EXPECT_EQ(span_error("span_init: 0"), "no error");
  EXPECT_EQ(span_error("span_init: 64"), "no error");
}

TEST(AttentionPlan, RefusesAPatternOfDistancesOnCrossAttention) {
  EXPECT_THAT(error_of("cross: {type: softmax, pattern: {type: local, window: 3}}"), AllOf(HasSubstr("distance"), HasSubstr("cross")));
  EXPECT_EQ(error_of("{default: {type: softmax, pattern: local}, cross: softmax}"), "no error");
  for (const std::string pattern : {"atrous", "strided", "fixed"}) {
    EXPECT_THAT(error_of("cross: {type: rela, pattern: " + pattern + "}"), AllOf(HasSubstr("distance"), HasSubstr("cross"))) << pattern;
    EXPECT_EQ(error_of("{default: {type: rela, pattern: " + pattern + "}, cross: softmax}"), "no error");
  }
  EXPECT_THAT(error_of("cross: {type: softmax, pattern: {heads: [full, full, full, fixed]}}"), HasSubstr("distance"));
}

std::string pattern_error(const std::string& pattern) {
  return error_of("encoder_self:\n  type: softmax\n  pattern: " + pattern);
}

TEST(AttentionPlan, RefusesPatternOptionsOutOfTheirRange) {
  const std::string place = "test.yaml:3: model.attention.encoder_self.pattern.";
  EXPECT_THAT(pattern_error("{type: local, window: -1}"), AllOf(HasSubstr(place + "window is \"-1\""), HasSubstr("at least 0")));
  EXPECT_THAT(pattern_error("{type: atrous, stride: 0}"), AllOf(HasSubstr(place + "stride is \"0\""), HasSubstr("at least 1")));
  EXPECT_THAT(pattern_error("{type: strided, window: -2}"), AllOf(HasSubstr(place + "window is \"-2\""), HasSubstr("at least 0")));
  EXPECT_THAT(pattern_error("{type: strided, stride: 0}"), AllOf(HasSubstr(place + "stride is \"0\""), HasSubstr("at least 1")));
  EXPECT_THAT(pattern_error("{type: fixed, block: 0}"), AllOf(HasSubstr(place + "block is \"0\""), HasSubstr("at least 1")));
  EXPECT_THAT(pattern_error("{type: fixed, summary: -1}"), AllOf(HasSubstr(place + "summary is \"-1\""), HasSubstr("at least 0")));
  EXPECT_THAT(pattern_error("{type: atrous, stride: 2.5}"), AllOf(HasSubstr(place + "stride is \"2.5\""), HasSubstr("whole number")));
}

TEST(AttentionPlan, RefusesASummaryLongerThanItsBlock) {
  EXPECT_THAT(pattern_error("{type: fixed, block: 4, summary: 5}"),
              AllOf(HasSubstr("test.yaml:3: model.attention.encoder_self.pattern.summary is \"5\""), HasSubstr("at most block, 4")));
  EXPECT_EQ(pattern_error("{type: fixed, block: 4, summary: 4}"), "no error");
}

TEST(AttentionPlan, RefusesAnOptionThatThePatternDoesNotHave) {
  EXPECT_THAT(pattern_error("{type: atrous, window: 4}"), AllOf(HasSubstr("window"), HasSubstr("stride")));
  EXPECT_THAT(pattern_error("{type: strided, strid: 4}"), HasSubstr("did you mean model.attention.encoder_self.pattern.stride?"));
  EXPECT_THAT(pattern_error("{type: full, block: 4}"), HasSubstr("block"));
}

TEST(AttentionPlan, RefusesAnUnknownPatternAndNorm) {
  EXPECT_THAT(error_of("encoder_self: {type: softmax, pattern: locale}"), HasSubstr("Did you mean \"local\"?"));
  EXPECT_THAT(error_of("encoder_self: {type: softmax, pattern: atrus}"),
              AllOf(HasSubstr("known patterns: full, local, atrous, strided, fixed"), HasSubstr("Did you mean \"atrous\"?")));
  EXPECT_THAT(error_of("default: {type: rela, norm: gated}"), HasSubstr("known norms: none, rms, gated_rms, layer"));
  EXPECT_THAT(error_of("default: {type: rela, norm: {type: rms, gain: ones}}"), HasSubstr("gain_init"));
}

TEST(AttentionPlan, GivesACalibratedTypeItsBase) {
  const AttentionPlan plan = plan_of("cross: {type: calibrated, base: {type: entmax, alpha: 1.3}, combine: anneal, mask_every: 2}");
  const AttentionType& type = *plan.cross[0].type;
  EXPECT_STREQ(type.entry().name, "entmax");
  EXPECT_EQ(type.name(), "calibrated");
  EXPECT_THAT(yaml_of(plan.cross[0]), AllOf(HasSubstr("alpha: 1.3"), HasSubstr("anneal_steps: 100000"), Not(HasSubstr("lambda"))));
  EXPECT_EQ(make_attention_type(type.description(), 4)->description().to_yaml(), type.description().to_yaml());
  ASSERT_NE(type.calibrated(), nullptr);
  EXPECT_EQ(type.calibrated()->mask_every, 2);
  EXPECT_EQ(type.calibrated()->mask_loss_cap, 10);
  EXPECT_STREQ(plan_of("cross: {type: calibrated}").cross[0].type->entry().name, "softmax");
  EXPECT_EQ(plan_of("cross: {type: calibrated, base: rela}").cross[0].norm, "gated_rms");
  EXPECT_EQ(plan_of("cross: rela").cross[0].type->calibrated(), nullptr);
}

TEST(AttentionPlan, RefusesCalibrationWithoutMeaning) {
  EXPECT_THAT(error_of("default: calibrated"), AllOf(HasSubstr("starts at the decoder"), HasSubstr("calibrate cross or decoder_self")));
  EXPECT_THAT(error_of("encoder_self: {type: calibrated, combine: gate}"), HasSubstr("test.yaml:1"));
  EXPECT_THAT(error_of("cross: {type: calibrated, combine: fixed, base: rela}"),
              AllOf(HasSubstr("rela"), HasSubstr("rows need not sum to one"), HasSubstr("anneal or gate")));
  EXPECT_EQ(error_of("cross: {type: calibrated, combine: gate, base: rela}"), "no error");
  EXPECT_THAT(error_of("cross: {type: calibrated, base: {type: softmax, pattern: full}}"), HasSubstr("write it beside `base`"));
  EXPECT_THAT(error_of("cross: {type: calibrated, base: {type: rela, norm: rms}}"), HasSubstr("write it beside `base`"));
  EXPECT_THAT(error_of("cross: {type: calibrated, base: calibrated}"), HasSubstr("a mask of its own"));
  EXPECT_THAT(error_of("cross: {type: softmax, base: rela}"), HasSubstr("base"));
  EXPECT_THAT(error_of("cross: {type: calibrated, base: sofmax}"), HasSubstr("softmax"));
}

TEST(AttentionPlan, RefusesOptionsOfCalibrationThatDoNotFit) {
  EXPECT_THAT(error_of("cross: {type: calibrated, lambda: 2}"), HasSubstr("`combine: fixed` only"));
  EXPECT_THAT(error_of("cross: {type: calibrated, combine: fixed, anneal_steps: 2}"), HasSubstr("`combine: anneal` only"));
  EXPECT_THAT(error_of("cross: {type: calibrated, combine: gated}"), HasSubstr("Did you mean \"gate\"?"));
  EXPECT_THAT(error_of("cross: {type: calibrated, mask_every: 0}"), HasSubstr("mask_every"));
  EXPECT_THAT(error_of("cross: {type: calibrated, mask_loss_cap: 0}"), HasSubstr("mask_loss_cap"));
}

TEST(AttentionPlan, RefusesMasksThatAreTrainedInDifferentWays) {
  EXPECT_THAT(error_of("cross:\n  default: calibrated\n  layers: {0: {type: calibrated, mask_every: 2}}"),
              AllOf(HasSubstr("test.yaml:2: model.attention.cross.default is \"calibrated\"; mask_every is 1 here"),
                    HasSubstr("and 2 at model.attention.cross.layers.0.mask_every (test.yaml:3)")));
  EXPECT_THAT(error_of("decoder_self: calibrated\ncross:\n  type: calibrated\n  mask_loss_cap: 2.5"),
              AllOf(HasSubstr("test.yaml:4: model.attention.cross.mask_loss_cap is \"2.5\"; mask_loss_cap is 2.5 here"),
                    HasSubstr("and 10 at model.attention.decoder_self (test.yaml:1)")));
  EXPECT_EQ(error_of("cross: {default: calibrated, layers: {0: {type: calibrated, mask_penalty: 2}}}"), "no error");
}

TEST(AttentionPlan, GivesEachHeadItsPattern) {
  const AttentionPlan plan = plan_of(
      "decoder_self: {type: topk, pattern: {heads: [full, {type: atrous, stride: 2}, strided, {type: fixed, block: 4, summary: 2}]}}");
  EXPECT_THAT(yaml_of(plan.decoder_self[0]), AllOf(HasSubstr("stride: 2"), HasSubstr("summary: 2")));
  std::vector<KeySegment> segments;
  plan.decoder_self[0].type->pattern(1).append_visible(3, 6, segments);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].begin, 1);
  EXPECT_EQ(segments[0].count, 3);
  EXPECT_EQ(segments[0].stride, 2);
}

TEST(AttentionPlan, RefusesPatternsThatDoNotMatchTheHeads) {
  EXPECT_THAT(error_of("encoder_self: {type: softmax, pattern: {heads: [full, local]}}"), HasSubstr("4 patterns"));
  EXPECT_THAT(error_of("encoder_self: {type: softmax, pattern: {heads: [full, full, full, full], window: 4}}"),
              AllOf(HasSubstr("pattern.window is \"4\""), HasSubstr("nothing beside it")));
}

TEST(AttentionPlan, NamesTheLineOfTheOptionThatHasNoMeaningAtASite) {
  EXPECT_THAT(error_of("cross:\n  type: softmax\n  pattern: local\n"),
              StartsWith("test.yaml:3: model.attention.cross.pattern is \"local\"; this pattern looks at the distance"));
  EXPECT_THAT(error_of("cross:\n  norm: none\n  type: span\n"),
              StartsWith("test.yaml:3: model.attention.cross.type is \"span\"; a key's weight depends on its distance"));
  EXPECT_THAT(error_of("cross: span\n"), StartsWith("test.yaml:1: model.attention.cross is \"span\"; a key's weight"));
  EXPECT_THAT(error_of("encoder_self:\n  mask_every: 2\n  type: calibrated\n"),
              StartsWith("test.yaml:3: model.attention.encoder_self.type is \"calibrated\"; its mask is trained"));
}

TEST(AttentionPlan, RefusesALayerThatIsNotThere) {
  EXPECT_THAT(error_of("encoder_self: {layers: {2: softmax}}"), AllOf(HasSubstr("\"2\""), HasSubstr("to 1")));
  EXPECT_THAT(error_of("encoder_self: {layers: {top: softmax}}"), HasSubstr("\"top\""));
}

TEST(AttentionPlan, RefusesALayerThatIsNamedInTwoWays) {
  EXPECT_THAT(error_of("cross:\n  layers:\n    1: softmax\n    01: topk"),
              AllOf(HasSubstr("test.yaml:4: "), HasSubstr("layer 1 is named twice, here as \"01\"")));
}

TEST(AttentionPlan, DescribesATypeSoThatItReadsBack) {
  const auto type = make_attention_type(parse_yaml("{type: topk, ratio: 4, pattern: {type: local, window: 2}}", "test"), 2);
  const auto again = make_attention_type(type->description(), 2);
  EXPECT_EQ(again->description().to_yaml(), type->description().to_yaml());
  EXPECT_THAT(type->description().to_yaml(), AllOf(HasSubstr("floor: 8"), HasSubstr("window: 2")));
}

TEST(AttentionHelp, SaysWhatOfARangeIsRefused) {
  EXPECT_THAT(attention_help(),
              AllOf(HasSubstr("where alpha starts, between 1.01 and 2 without these two"), HasSubstr("in place of k, 1 or more")));
}

}  // namespace
}  // namespace lacuna
