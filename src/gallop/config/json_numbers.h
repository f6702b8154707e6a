#pragma once

#include <vector>

#include <nlohmann/json.hpp>

namespace gallop::config {

/// Numbers that JSON has not are texts: "nan", "inf", "-inf".
nlohmann::ordered_json number_json(double number);
nlohmann::ordered_json numbers_json(const std::vector<double>& numbers);
/// The same for programs in JavaScript or with Protocol Buffers: "NaN", "Infinity", "-Infinity".
nlohmann::ordered_json spelled_number_json(double number);
/// The inverse of both. Throw DataError or an exception of the JSON library.
double number_of(const nlohmann::ordered_json& json);
/// Empty where there is no such key.
std::vector<double> numbers_of(const nlohmann::ordered_json& json, const char* key);

}  // namespace gallop::config
