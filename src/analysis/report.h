#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/analysis.h"

namespace lacuna {

/// Returns an HTML page that needs no other file: charts of all models side by side, and the weights of the sentences kept for it, as far
/// as they fit into 3 MB. The page is made of report.html, .css and report_*.js, which are compiled in. `analysis` is the models'
/// analysis_json().
std::string report_html(const std::vector<ModelAnalysis>& models, const nlohmann::ordered_json& analysis);

/// Returns a part of the page by its placeholder, the word between {{ and }}; PAGE is the page itself.
std::string report_part(const std::string& name);

}  // namespace lacuna
