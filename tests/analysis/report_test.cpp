
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "analysis/analysis_folder.h"
#include "small_analysis.h"

namespace lacuna {
namespace {

std::vector<ModelAnalysis> two_models(SmallCorpus& corpus) {
  corpus.settings.gold = corpus.folder.write("gold", "0-1 1-0\n0-1\n\n4-0\n0-0\n");
  return {corpus.analyze(*small_model_with("softmax")), corpus.analyze(*small_model_with("rela"))};
}

std::string html_of(const std::vector<ModelAnalysis>& models, const SmallCorpus& corpus) {
  return report_html(models, analysis_json(models, corpus.settings));
}

/// Returns the text between two others.
std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t begin = text.find(before) + before.size();
  return text.substr(begin, text.find(after, begin) - begin);
}

TEST(Report, NeedsNothingBesideIt) {
  SmallCorpus corpus;
  const std::string html = html_of(two_models(corpus), corpus);
  for (const char* link : {"src=", "@import", "{{", "https://", "<link rel=\"stylesheet\""})
    EXPECT_EQ(html.find(link), std::string::npos) << link;
  const size_t http = html.find("http://");
  EXPECT_EQ(html.compare(http, 26, "http://www.w3.org/2000/svg"), 0);  // a name, not an address
  EXPECT_EQ(html.find("http://", http + 1), std::string::npos);
}

TEST(Report, HoldsTheAnalysisAndTheWeightsOfItsSentences) {
  SmallCorpus corpus;
  const auto data = nlohmann::json::parse(between(html_of(two_models(corpus), corpus), "id=\"data\">", "</script>"));
  EXPECT_EQ(data.at("analysis").at("models").size(), 2u);
  EXPECT_EQ(data.at("sentences").size(), 4u);
  EXPECT_EQ(data.at("sentences")[2].at("models").size(), 2u);
  EXPECT_EQ(data.at("sentences")[2].at("models")[1].at("scales").size(), 6u);
}

TEST(Report, HoldsGoldLinksAndSaysWhichArePossible) {
  SmallCorpus corpus;
  corpus.settings.gold = corpus.folder.write("gold", "0-1 1?0\n0-1\n\n4-0\n0-0\n");
  const std::vector<ModelAnalysis> models = {corpus.analyze(*small_model_with("softmax"))};
  const auto data = nlohmann::json::parse(between(html_of(models, corpus), "id=\"data\">", "</script>"));
  EXPECT_EQ(data.at("sentences")[0].at("gold"), nlohmann::json::parse(R"({"sure": [[0, 1]], "possible": [[1, 0]]})"));
  corpus.settings.gold = "";
  const std::vector<ModelAnalysis> without = {corpus.analyze(*small_model_with("softmax"))};
  EXPECT_EQ(html_of(without, corpus).find("\"gold\""), std::string::npos);
}

TEST(Report, LeavesOutSentencesThatWouldMakeItHeavierThanThreeMegabytes) {
  SmallCorpus corpus;
  std::vector<ModelAnalysis> models = two_models(corpus);
  std::mt19937 random(1);
  for (ModelAnalysis& model : models)
    for (ExploredSentence& sentence : model.explored.kept)
      for (int i = 0; i < 525000; ++i) sentence.levels.push_back(static_cast<char>(random() % 256));
  const std::string html = html_of(models, corpus);
  EXPECT_LT(html.size(), 3000000u);
  const auto data = nlohmann::json::parse(between(html, "id=\"data\">", "</script>"));
  EXPECT_EQ(data.at("sentences").size(), 1u);
  EXPECT_EQ(data.at("omitted"), 3);
}

TEST(Report, LeavesOutALongSentenceAndNotThoseBehindIt) {
  SmallCorpus corpus;
  std::vector<ModelAnalysis> models = {corpus.analyze(*small_model_with("softmax"))};
  std::mt19937 random(1);
  for (int i = 0; i < 2100000; ++i) models[0].explored.kept[0].levels.push_back(static_cast<char>(random() % 256));
  const auto data = nlohmann::json::parse(between(html_of(models, corpus), "id=\"data\">", "</script>"));
  EXPECT_EQ(data.at("sentences").size(), 3u);
  EXPECT_EQ(data.at("sentences")[0].at("line"), 1);
  EXPECT_EQ(data.at("omitted"), 1);
}

TEST(Report, LeavesOutWhatWasTooLargeToKeepAndWhatFillsThePageByItsText) {
  SmallCorpus corpus;
  std::vector<ModelAnalysis> models = two_models(corpus);
  models[1].explored.omitted = {models[1].explored.kept[0].line};
  models[1].explored.kept.erase(models[1].explored.kept.begin());
  models[0].explored.kept[1].src_text = std::string(2800000, 'x');
  models[0].explored.kept[2].src_text = std::string(600000, '<');  // six bytes each, in a script element
  const auto data = nlohmann::json::parse(between(html_of(models, corpus), "id=\"data\">", "</script>"));
  ASSERT_EQ(data.at("sentences").size(), 1u);
  EXPECT_EQ(data.at("sentences")[0].at("line"), models[0].explored.kept[3].line);
  EXPECT_EQ(data.at("omitted"), 3);
}

TEST(Report, TellsItsExplorerWhichPiecesAreJoined) {
  SmallCorpus corpus;
  std::vector<ModelAnalysis> models = {corpus.analyze(*small_model_with("softmax"))};
  models[0].explored.kept[1].joiner = "@@";
  const auto data = nlohmann::json::parse(between(html_of(models, corpus), "id=\"data\">", "</script>"));
  EXPECT_FALSE(data.at("sentences")[0].at("models")[0].contains("joiner"));
  EXPECT_EQ(data.at("sentences")[1].at("models")[0].at("joiner"), "@@");
}

TEST(Report, SurvivesTextThatLooksLikeMarkup) {
  SmallCorpus corpus;
  std::vector<ModelAnalysis> models = two_models(corpus);
  for (ModelAnalysis& model : models) model.explored.kept[0].src_text = "</script><b>";
  const std::string html = html_of(models, corpus);
  EXPECT_EQ(html.find("</script><b>"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(between(html, "id=\"data\">", "</script>")).at("sentences")[0].at("src_text"), "</script><b>");
}

TEST(AnalysisTables, HoldTheNumbersOfTheJson) {
  SmallCorpus corpus;
  const std::vector<ModelAnalysis> models = two_models(corpus);
  const auto json = analysis_json(models, corpus.settings);
  const auto& place = json.at("models")[1].at("places")[4];
  EXPECT_EQ(place.at("site"), "cross");
  EXPECT_EQ(place.at("diversity").size(), 4u);
  EXPECT_EQ(place.at("heads").at("null_rate").size(), 2u);
  const std::vector<CsvTable> tables = analysis_tables(models, corpus.settings);
  ASSERT_EQ(tables.size(), 2u);
  char line[80];
  std::snprintf(line, sizeof(line), "small,cross,0,rela,all,sparsity,%.6g\n", place.at("sparsity").get<double>());
  EXPECT_THAT(tables[0].text, testing::HasSubstr(line));
  EXPECT_THAT(tables[1].text, testing::HasSubstr("small,1,average,shifted,"));
}

/// A number as a table has it.
std::string in_table(const nlohmann::ordered_json& value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value.get<double>());
  return text;
}

TEST(AnalysisTables, HoldAllNumbersOfCalibration) {
  SmallCorpus corpus;
  corpus.settings.importance_sentences = 2;
  const std::vector<ModelAnalysis> models = {corpus.analyze(*small_model_with("{cross: calibrated}"))};
  const auto json = analysis_json(models, corpus.settings).at("models")[0];
  const std::vector<CsvTable> tables = analysis_tables(models, corpus.settings);
  const auto& place = json.at("places")[5];
  const auto& calibration = place.at("calibration");
  const std::string start = "small,cross,1,calibrated,";
  EXPECT_GE(calibration.at("by_entropy").size(), 2u);
  EXPECT_THAT(tables[0].text, testing::HasSubstr(start + "all,calibration_rows," + calibration.at("rows").dump() + "\n"));
  for (const auto& bin : calibration.at("by_entropy")) {
    const std::string from = "_from_" + in_table(bin.at("from")) + ",";
    EXPECT_THAT(tables[0].text, testing::HasSubstr(start + "all,calibration_rows" + from + bin.at("rows").dump() + "\n"));
    EXPECT_THAT(tables[0].text, testing::HasSubstr(start + "all,calibration_divergence" + from + in_table(bin.at("divergence")) + "\n"));
  }
  for (int head = 0; head < 2; ++head) {
    const std::string gate = in_table(place.at("numbers").at("gate")[static_cast<size_t>(head)]);
    EXPECT_THAT(tables[0].text, testing::HasSubstr(start + std::to_string(head) + ",gate," + gate + "\n"));
  }
  ASSERT_EQ(tables[1].file, "importance.csv");
  const auto& layer = json.at("importance").at("layers")[1];
  for (const char* of : {"attention", "original", "mask"}) {
    const auto& one = layer.at(of);
    const std::string numbers = in_table(one.at("tau_b")) + "," + one.at("rows").dump() + "," + one.at("undefined").dump();
    EXPECT_THAT(tables[1].text, testing::HasSubstr(std::string("small,1,") + of + "," + numbers + "\n"));
  }
}

TEST(AnalysisTables, LeaveOutWhatWasNotAskedFor) {
  SmallCorpus corpus;
  corpus.settings.only = {"sparsity"};
  const auto json = analysis_json({corpus.analyze(*small_model_with("rela"))}, corpus.settings);
  const auto& place = json.at("models")[0].at("places")[0];
  EXPECT_TRUE(place.contains("sparsity"));
  EXPECT_FALSE(place.contains("entropy") || place.contains("diversity"));
}

}  // namespace
}  // namespace lacuna
