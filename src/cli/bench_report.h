#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lacuna {

/// Formats a number with four significant digits.
std::string short_number(double value);
/// Prints a table to stdout; the first row has the column headings.
void print_table(const std::vector<std::vector<std::string>>& rows);
/// Prints a line for each scalar entry of an object.
void print_facts(const nlohmann::ordered_json& report);
/// Prints a report to stdout: as one JSON object, or its scalar entries line by line.
void print_report(const nlohmann::ordered_json& report, bool as_json);

/// `lacuna bench train ...` and so on.
int bench_train(const std::vector<std::string>& arguments);
int bench_translate(const std::vector<std::string>& arguments);

}  // namespace lacuna
