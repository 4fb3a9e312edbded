#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>

#include "document/html_tokens.h"
#include "sample_document.h"

namespace lacuna::document {
namespace {

template <class Translate>
std::string translated_html(const std::string& html, const Translate& translate) {
  const Splitting how = english();
  return translated_by(*html_document(html, how), translate).text.text;
}

/// Returns the words in reverse order, each linked with what it was.
LinkedText reversed(const std::string& text) {
  std::vector<Span> words = words_of(text);
  LinkedText linked;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) linked.text += ' ';
    linked.text += words[words.size() - 1 - i].of(text);
    linked.links.emplace_back(static_cast<int32_t>(words.size() - 1 - i), static_cast<int32_t>(i));
  }
  return linked;
}

LinkedText lost(const std::string&) {
  return {"nothing is left"};
}

TEST(HtmlDocument, TakesElementsAlongWithTheirWords) {
  EXPECT_EQ(translated_html("<p>A <b>red</b> <a href=\"x?a&amp;b\">big car</a>.</p>", reversed),
            "<p><a href=\"x?a&amp;b\">car. big</a> <b>red</b> A</p>");
  EXPECT_EQ(translated_html("<p>One <i>two <b>three</b></i> four.</p>", reversed), "<p>four. <i><b>three</b> two</i> One</p>");
  EXPECT_EQ(translated_html("see (<em>this</em>), please", same), "see (<em>this</em>), please");
}

TEST(HtmlDocument, KeepsAllButTheTexts) {
  const std::string html =
      "<!DOCTYPE html>\n<html lang=de><head><title>A b</title><style>p > b { x: y }</style><script>if (a<b) '<p>'</script></head>\n"
      "<body class='x'>\n  <!-- a comment -->\n  <p id=1>Text one.<br>Text &amp; two.</p>\n <ul><li>item<li>other</ul>\n"
      "<p translate=\"no\">Not this</p><pre>  nor\n this</pre><p>Use <code>a &lt; b</code> or &alpha; <img src=x alt='y'> "
      "here.</p></body></html>\n";
  EXPECT_EQ(translated_html(html, same), html);
  const Splitting how = english();
  const auto document = html_document(html, how);
  for (const char* const text : {"A b", "Text one.", "Text & two.", "item", "other", "Use X1 or X2 here."})
    EXPECT_THAT(document->sentences(), testing::Contains(text));
  for (const std::string& sentence : document->sentences()) {
    EXPECT_EQ(sentence.find("Not"), std::string::npos);
    EXPECT_EQ(sentence.find("nor"), std::string::npos);
  }
}

TEST(HtmlDocument, EscapesTranslations) {
  EXPECT_EQ(translated_html("<p>A &lt; b</p>", [](const std::string& text) { return LinkedText{text + " <script> & \"x\""}; }),
            "<p>A &lt; b &lt;script&gt; &amp; \"x\"</p>");
}

TEST(HtmlDocument, LeavesTagsThatDoNotNestWhereTheyAre) {
  EXPECT_EQ(translated_html("<b>one <i>two</b> three</i>", [](const std::string& text) { return LinkedText{"[" + text + "]"}; }),
            "<b>[one] <i>[two]</b> [three]</i>");
  EXPECT_EQ(translated_html("<b>one<p>two</b></p>", same), "<b>one<p>two</b></p>");
  EXPECT_EQ(translated_html("a <b> c < d </p x", same), "a <b> c &lt; d </p x");
}

TEST(HtmlDocument, NeverLosesATagWhereLinksAreMissing) {
  const std::string html = translated_html("<p>a <b>b</b> <i>c <u>d</u></i> <img src=1> <a href=2>e</a></p>", lost);
  for (const char* const tag : {"<b>", "</b>", "<i>", "</i>", "<u>", "</u>", "<img src=1>", "<a href=2>", "</a>"})
    EXPECT_NE(html.find(tag), std::string::npos) << tag << " in " << html;
}

/// Returns the tags of HTML in order; checks that they nest.
std::vector<std::string> nested_tags(const std::string& html) {
  std::vector<std::string> tags, open;
  for (const HtmlToken& token : html_tokens(html)) {
    if (token.kind == HtmlToken::Kind::kText) continue;
    tags.emplace_back(token.place.of(html));
    if (token.kind == HtmlToken::Kind::kStart && token.name != "img" && token.name != "br") open.push_back(token.name);
    if (token.kind != HtmlToken::Kind::kEnd) continue;
    EXPECT_FALSE(open.empty() || open.back() != token.name) << html;
    if (!open.empty()) open.pop_back();
  }
  EXPECT_TRUE(open.empty()) << html;
  return tags;
}

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  int below(int most) { return std::uniform_int_distribution(0, most - 1)(random_); }
  std::string content(int depth) {
    static const std::vector<std::string> kTags = {"b", "i", "em", "strong", "a", "span", "sub", "u"};
    static const std::vector<std::string> kWords = {"word",  "and",       "Berlin,", "(1)",          "end.",
                                                    "&amp;", "caf\u00e9", "\"x\"",   "http://a.b/c", "{name}"};
    std::string html;
    for (int i = below(6) + 1; i > 0; --i) {
      const int kind = depth < 4 ? below(8) : 7;
      if (kind < 2) {
        const std::string& tag = kTags[static_cast<size_t>(below(8))];
        html.append("<").append(tag).append(" id=\"").append(std::to_string(++ids_)).append("\">");
        html.append(content(depth + 1)).append("</").append(tag).append(below(3) > 0 ? "> " : ">");
      } else if (kind == 2) {
        html.append("<img src='").append(std::to_string(++ids_)).append(below(2) > 0 ? "'> " : "'>");
      } else if (kind == 3) {
        html.append("<code id=").append(std::to_string(++ids_)).append(">x &lt; y</code> ");
      } else if (kind == 4 && depth == 0) {
        html += "<br>";
      } else {
        html.append(kWords[static_cast<size_t>(below(10))]).append(below(8) > 0 ? " " : "");
      }
    }
    return html;
  }

  /// Returns words in another order, some lost, some new, with links that are partly wrong or missing.
  LinkedText translation(const std::string& text) {
    const std::vector<Span> words = words_of(text);
    LinkedText linked;
    int32_t count = 0;
    for (int i = below(static_cast<int>(words.size()) + 3); i > 0; --i) {
      const int src = below(static_cast<int>(words.size()));
      if (count > 0) linked.text += ' ';
      linked.text += below(4) > 0 ? words[static_cast<size_t>(src)].of(text) : "new";
      if (below(4) > 0) linked.links.emplace_back(below(5) > 0 ? src : below(static_cast<int>(words.size())), count);
      ++count;
    }
    return linked;
  }

 private:
  std::mt19937 random_;
  int ids_ = 0;
};

TEST(HtmlDocument, GivesEveryTagBackOnceAndNestedInFiveHundredParagraphs) {
  Generator generator(7);
  for (int i = 0; i < 500; ++i) {
    const std::string html = std::string("<p>").append(generator.content(0)).append("</p>");
    std::vector<std::string> before = nested_tags(html);
    const auto translate = [&](const std::string& text) { return i % 5 == 0 ? reversed(text) : generator.translation(text); };
    const std::string result = translated_html(html, translate);
    std::vector<std::string> after = nested_tags(result);
    std::ranges::sort(before);
    std::ranges::sort(after);
    EXPECT_EQ(after, before) << html << "\n" << result;
    if (HasFailure()) break;
  }
}

TEST(HtmlDocument, GoesThroughHostileInputInTime) {
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string piece :
       {"<b>", "<div>", "<b id=1>a ", "a<img>", "</b>", "<", "<!--", "<a href=\"", "<script>", "<b>a</b> ", "<b><i></b>", "&#x1F600;", "&",
        "<code>", "<p>a<b>", "<span translate=no>", "</", "<x y z", "a <b>b</b> <img> "}) {
    std::string html = "text ";
    while (html.size() < 100000) html += piece;
    EXPECT_FALSE(translated_html(html, same).empty()) << piece;
  }
  EXPECT_EQ(translated_html("<p>a <b x='" + std::string(1000000, 'y') + "'>b</b></p>", same).size(), 1000000U + 22);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

}  // namespace
}  // namespace lacuna::document
