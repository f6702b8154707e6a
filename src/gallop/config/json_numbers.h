#pragma once

#include <vector>

#include <nlohmann/json.hpp>

namespace gallop::config {

/// Non-finite numbers, which JSON lacks, are strings: "nan", "inf", "-inf".
nlohmann::ordered_json number_json(double number);
nlohmann::ordered_json numbers_json(const std::vector<double>& numbers);
/// The same in the spelling of JavaScript and Protocol Buffers: "NaN", "Infinity", "-Infinity".
nlohmann::ordered_json spelled_number_json(double number);
/// Parses both. Throws DataError or an exception of the JSON library.
double number_of(const nlohmann::ordered_json& json);
/// Empty if the key does not exist.
std::vector<double> numbers_of(const nlohmann::ordered_json& json, const char* key);

}  // namespace gallop::config
