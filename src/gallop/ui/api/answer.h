#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gallop/ui/http/message.h"

namespace gallop::ui::api {

using Json = nlohmann::ordered_json;

/// Ends a request with this status. The message is a single line for the user.
class Refusal : public std::runtime_error {
 public:
  Refusal(int status, const std::string& message) : std::runtime_error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

http::Response json_response(const Json& json, int status = 200);
/// The body {"error": "..."}.
http::Response error_response(int status, const std::string& message);

/// Non-finite numbers, which JSON lacks, become strings that JavaScript's Number() parses: "NaN",
/// "Infinity", "-Infinity".
Json number_json(double number);
Json numbers_json(const std::vector<double>& numbers);

}  // namespace gallop::ui::api
