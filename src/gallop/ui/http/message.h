#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gallop/ui/http/event_stream.h"

namespace gallop::ui::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// Converts to lower case, in which header and host names are compared.
std::string lower_case(std::string_view text);

/// Why a request is rejected before it is handled.
struct Fault {
  int status = 400;
  std::string message;
};

/// An HTTP request. The target is percent-decoded exactly once.
struct Request {
  std::string method;  ///< "GET", "POST", ...
  std::string path;    ///< "/api/runs"
  std::map<std::string, std::string> query{};
  Headers headers{};  ///< Names in lower case.
  std::string body{};
  std::optional<Fault> fault{};

  /// The value of a header that occurs exactly once.
  const std::string* header(std::string_view name) const;
};

/// An HTTP response: a body, or a stream of events instead.
struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body{};
  Headers headers{};
  std::shared_ptr<EventStream> events{};
};

}  // namespace gallop::ui::http
