#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/analysis.h"

namespace lacuna {

/// One HTML page that needs nothing beside it: charts of all models side by side, and the weights of the sentences kept for it, but for
/// those that a page of 3 MB has no room for. The page is report.html, .css and report_*.js, compiled in.
/// `analysis`: of the same models, as analysis_json() gives it.
std::string report_html(const std::vector<ModelAnalysis>& models, const nlohmann::ordered_json& analysis);

/// The page's parts, by the word between {{ and }} that they stand for; PAGE is the page.
std::string report_part(const std::string& name);

}  // namespace lacuna
