#include "gallop/ui/api/answer.h"

#include "gallop/config/json_numbers.h"

namespace gallop::ui::api {

http::Response json_response(const Json& json, int status) {
  http::Response response{.status = status};
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

http::Response error_response(int status, const std::string& message) {
  return json_response({{"error", message}}, status);
}

Json number_json(double number) { return config::spelled_number_json(number); }

Json numbers_json(const std::vector<double>& numbers) {
  Json list = Json::array();
  for (const double number : numbers) list.push_back(number_json(number));
  return list;
}

}  // namespace gallop::ui::api
