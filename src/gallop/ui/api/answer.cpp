#include "gallop/ui/api/answer.h"

#include <cmath>

namespace gallop::ui::api {

http::Response json_response(const Json& json, int status) {
  http::Response response{.status = status};
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

http::Response error_response(int status, const std::string& message) {
  return json_response({{"error", message}}, status);
}

Json number_json(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
}

Json numbers_json(const std::vector<double>& numbers) {
  Json list = Json::array();
  for (const double number : numbers) list.push_back(number_json(number));
  return list;
}

}  // namespace gallop::ui::api
