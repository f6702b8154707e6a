#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/ui/http/message.h"

namespace gallop::ui::http {

/// Access control of a server. Pages of other sites can reach a server on this machine through the
/// user's browser: by its address, or by a name of theirs that resolves to it (DNS rebinding).
class Guard {
 public:
  /// `names`: host names of the server besides 127.0.0.1, localhost and [::1]; NAME:PORT if it is
  /// reached through another port. Generates a token that pages of other sites cannot read.
  Guard(int port, const std::vector<std::string>& names);

  const std::string& token() const { return token_; }

  /// The response to a forbidden request; nothing if it is allowed. Does not read the body. Every
  /// request must have one of the server's names as its host, and must not be cross-origin;
  /// requests that change something also need the origin, the token and a JSON body. Links from
  /// other sites are allowed.
  std::optional<Fault> refusal(const Request& request) const;

 private:
  std::optional<Fault> refusal_of_post(const Request& request) const;
  void add_host(const std::string& name, int port);
  bool is_host(std::string_view text) const;
  bool is_own_origin(std::string_view origin) const;

  std::vector<std::string> hosts_;  ///< With the port, in lower case.
  std::string token_;
};

/// Adds the security headers of every response: only the server's own scripts, no framing, no
/// referrer.
void add_security_headers(Response& response);

}  // namespace gallop::ui::http
