#include "gallop/config/json_numbers.h"

#include <cmath>
#include <string>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::config {

using Json = nlohmann::ordered_json;

Json number_json(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
}

Json spelled_number_json(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
}

Json numbers_json(const std::vector<double>& numbers) {
  Json list = Json::array();
  for (const double number : numbers) list.push_back(number_json(number));
  return list;
}

double number_of(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  const auto number = parse_number<double>(json.get<std::string>());
  if (!number) throw DataError(fmt::format("not a number: {}", printable(json.dump())));
  return *number;
}

std::vector<double> numbers_of(const Json& json, const char* key) {
  std::vector<double> numbers;
  if (!json.contains(key)) return numbers;
  for (const Json& item : json.at(key)) numbers.push_back(number_of(item));
  return numbers;
}

}  // namespace gallop::config
