#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/ui/http/message.h"

namespace gallop::ui::http {

/// Who may ask a server for what. Pages of other sites reach a server on this machine through the
/// browser that shows them: by its address, or by a name of theirs that is made to lead to it (DNS
/// rebinding).
class Guard {
 public:
  /// `names`: beside 127.0.0.1, localhost and [::1], under which the server may be asked; NAME:PORT
  /// where that leads to it through another port. A token is made that pages of other sites cannot
  /// read.
  Guard(int port, const std::vector<std::string>& names);

  const std::string& token() const { return token_; }

  /// The answer to who may not ask; nothing for who may. The body is not looked at. All must name
  /// one of the server's names as their host, and come from its own page where they say from where;
  /// what changes something must, and have its token and JSON. Links of others may lead to it.
  std::optional<Fault> refusal(const Request& request) const;

 private:
  std::optional<Fault> refusal_of_post(const Request& request) const;
  void add_host(const std::string& name, int port);
  bool is_host(std::string_view text) const;
  bool is_own_origin(std::string_view origin) const;

  std::vector<std::string> hosts_;  ///< With the port, in small letters.
  std::string token_;
};

/// Headers of every answer: no code but the server's own, no frame around it, nothing told to
/// others.
void add_security_headers(Response& response);

}  // namespace gallop::ui::http
