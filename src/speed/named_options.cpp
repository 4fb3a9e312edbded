#include "speed/named_options.h"

#include <algorithm>
#include <vector>

#include "attention/attention.h"
#include "attention/registry.h"
#include "base/spelling.h"

namespace lacuna {

Options with_attention(const Options& options, const ConfigNode& attention) {
  Options changed = options;
  changed.model.attention = attention;
  resolve_attention(changed.model);  // for its errors
  return changed;
}

std::string attention_in_full(const Options& options) {
  const AttentionPlan plan = resolve_attention(options.model);
  std::vector<std::string> texts;
  for (const auto* site : {&plan.encoder_self, &plan.decoder_self, &plan.cross})
    for (const AttentionChoice& choice : *site) {
      ConfigNode node = choice.type->description();
      node.set("norm", ConfigNode::scalar(choice.norm));
      const std::string text = node.to_line();
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
    }
  return join(texts, " and ");
}

}  // namespace lacuna
