#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "sample_document.h"

namespace lacuna::document {
namespace {

template <class Translate>
std::string translated_subtitles(const std::string& file, const Translate& translate) {
  const Splitting how = english();
  return translated_by(*subtitle_document(file, how), translate).text.text;
}

LinkedText in_capitals(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return {text};
}

constexpr char kSrt[] =
    "\xEF\xBB\xBF"
    "1\r\n00:00:01,000 --> 00:00:02,500\r\nThe man who\r\ncame yesterday\r\n\r\n"
    "2\r\n00:00:02,600 --> 00:00:04,000\r\n<i>was my father.</i>\r\n\r\n"
    "3\r\n00:00:05,000 --> 00:00:06,000\r\n- Is that so?\r\n- Yes. It is.\r\n\r\n"
    "4\r\n00:01:00,000 --> 00:01:01,000\r\n{\\an8}A <b>big</b> house\r\n";

TEST(SubtitleDocument, KeepsTimesCountsLinesAndTags) {
  EXPECT_EQ(translated_subtitles(kSrt, same), kSrt);
}

TEST(SubtitleDocument, TranslatesSentencesAcrossCues) {
  const Splitting how = english();
  EXPECT_EQ(subtitle_document(kSrt, how)->sentences(),
            (std::vector<std::string>{"The man who came yesterday was my father.", "Is that so?", "Yes.", "It is.", "A big house"}));
  const std::string out = translated_subtitles(kSrt, [](const std::string& text) {
    if (!text.starts_with("The man")) return same(text);
    return LinkedText{"Der gestern kam, der Mann, war mein Vater.", {{0, 0}, {4, 1}, {3, 2}, {0, 3}, {1, 4}, {5, 5}, {6, 6}, {7, 7}}};
  });
  EXPECT_THAT(out, testing::HasSubstr("2,500\r\nDer gestern\r\nkam, der Mann,\r\n\r\n2\r\n"));
  EXPECT_THAT(out, testing::HasSubstr("<i>war mein Vater.</i>\r\n"));
}

TEST(SubtitleDocument, CutsByLengthWhereLinksAreMissing) {
  EXPECT_THAT(translated_subtitles(kSrt, in_capitals),
              testing::HasSubstr("THE MAN WHO\r\nCAME YESTERDAY\r\n\r\n2\r\n00:00:02,600 --> 00:00:04,000\r\n<i>WAS MY FATHER.</i>"));
  const std::string out = translated_subtitles(kSrt, [](const std::string&) { return LinkedText{"one"}; });
  EXPECT_EQ(std::ranges::count(out, '>'), std::ranges::count(std::string(kSrt), '>'));
}

TEST(SubtitleDocument, IsWebVttToo) {
  const std::string vtt =
      "WEBVTT - a title\n\nNOTE not this\nnor this\n\nSTYLE\n::cue { color: red }\n\nid 7\n00:01.000 --> 00:02.000 align:start\n<v "
      "Anna>Hello <c.loud>you</c> "
      "there.</v>\n\n01:00:03.000 --> 01:00:04.000\nA <01:00:03.500>b\n00:05.000 --> 00:06.000\nNo empty line before.";
  EXPECT_EQ(translated_subtitles(vtt, same), vtt);
  const std::string out = translated_subtitles(vtt, in_capitals);
  EXPECT_THAT(out, testing::HasSubstr("NOTE not this\nnor this"));
  EXPECT_THAT(out, testing::HasSubstr("<v Anna>HELLO"));
}

TEST(SubtitleDocument, GoesThroughWhatIsNoSubtitles) {
  for (const std::string file : {"", "\n", "-->", "1\n-->\n", "00:00:01,000 --> 00:00:02,000", "00:00:01,000 --> 00:00:02,000\n<i>\n",
                                 "x --> y\ntext\n", "99999999999999999999:00 --> 1:1\ntext", "00:01.0 --> 00:02.0\n-\n-\n<<>><\n"})
    EXPECT_EQ(translated_subtitles(file, same), file);
}

}  // namespace
}  // namespace lacuna::document
