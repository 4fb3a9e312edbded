#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lacuna {

/// A number in a table: four digits that count.
std::string short_number(double value);
/// Cells in columns, the first row being their heads.
void print_table(const std::vector<std::vector<std::string>>& rows);
/// A line for each entry of an object but for lists and objects, which are printed by whoever has a table of them.
void print_facts(const nlohmann::ordered_json& report);
/// What was measured, on stdout: one JSON object, or a line for each of its entries.
void print_report(const nlohmann::ordered_json& report, bool as_json);

/// `lacuna bench train ...` and so on.
int bench_train(const std::vector<std::string>& arguments);
int bench_translate(const std::vector<std::string>& arguments);
int bench_attention(const std::vector<std::string>& arguments);
int bench_kernels(const std::vector<std::string>& arguments);
int bench_lengths(const std::vector<std::string>& arguments);

}  // namespace lacuna
