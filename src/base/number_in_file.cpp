#include "base/number_in_file.h"

#include <fstream>
#include <sstream>

namespace lacuna {

std::optional<uint64_t> number_in_file(const std::filesystem::path& file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    if (!name.empty() && (!(words >> word) || word != name)) continue;
    uint64_t number = 0;
    if (words >> number) return number;
  }
  return {};
}

}  // namespace lacuna
