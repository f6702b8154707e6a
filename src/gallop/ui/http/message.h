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

/// In small letters, as names in headers and of hosts are compared.
std::string lower_case(std::string_view text);

/// Why a request is refused before anybody looks at what it asks for.
struct Fault {
  int status = 400;
  std::string message;
};

/// What a client asks for. The target is percent-decoded, once.
struct Request {
  std::string method;  ///< "GET", "POST", ...
  std::string path;    ///< "/api/runs"
  std::map<std::string, std::string> query{};
  Headers headers{};  ///< Names in small letters.
  std::string body{};
  std::optional<Fault> fault{};

  /// The value of a header that is there exactly once.
  const std::string* header(std::string_view name) const;
};

/// What a client gets: a body, or a stream of events in its place.
struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body{};
  Headers headers{};
  std::shared_ptr<EventStream> events{};
};

}  // namespace gallop::ui::http
