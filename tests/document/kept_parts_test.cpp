#include "document/kept_parts.h"

#include <gmock/gmock.h>

#include <string>

namespace lacuna::document {
namespace {

using Texts = std::vector<std::string>;

Texts kept(const std::string& text) {
  Texts parts;
  for (const Span part : kept_parts(text)) parts.emplace_back(part.of(text));
  return parts;
}

TEST(KeptParts, ArePlaceholders) {
  EXPECT_EQ(kept("Hi {{name}}, ${x}, {0} and {user.name}!"), (Texts{"{{name}}", "${x}", "{0}", "{user.name}"}));
  EXPECT_EQ(kept("%s of %1$s, %d%%, %-5.2f, %(name)s, %@, %ld, %{count}, %USER%"),
            (Texts{"%s", "%1$s", "%d", "%%", "%-5.2f", "%(name)s", "%@", "%ld", "%{count}", "%USER%"}));
  EXPECT_EQ(kept("Run `rm -rf x` or ``a ` b``."), (Texts{"`rm -rf x`", "``a ` b``"}));
}

TEST(KeptParts, AreAddresses) {
  EXPECT_EQ(kept("See https://example.com/a_(b)?q=1#x, www.x.org. (http://y.de/z)"),
            (Texts{"https://example.com/a_(b)?q=1#x", "www.x.org", "http://y.de/z"}));
  EXPECT_EQ(kept("Write to jo.e+x@mail.example.com, or a@b."), Texts{"jo.e+x@mail.example.com"});
  EXPECT_EQ(kept("访问https://example.com/路径。"), Texts{"https://example.com/"});
}

TEST(KeptParts, AreNotWordsThatLookAlike) {
  EXPECT_EQ(kept("50 %, 5%d, 20% der, {ein Satz}, $5, `, a@, @b.de, xhttp://, http:// , { }, {}, ${}, 100 %ig"), Texts());
}

TEST(KeptParts, AreFoundInTimeInHostileText) {
  for (const std::string piece : {"`", "{{", "${", "%", "@", "a@", "http://)", "%(", "``x`", ")"}) {
    std::string text = "http://x";
    for (int i = 0; i < 50000; ++i) text += piece;
    kept_parts(text);
  }
}

}  // namespace
}  // namespace lacuna::document
