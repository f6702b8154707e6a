#include "gallop/ui/http/guard.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/secret.h"
#include "gallop/base/text.h"

namespace gallop::ui::http {

namespace {

bool is_json(std::string_view type) {
  constexpr std::string_view kJson = "application/json";
  const std::string_view word = type.substr(0, type.find(';'));
  return word.substr(0, word.find_last_not_of(' ') + 1) == kJson;
}

size_t count(const Request& request, std::string_view name) {
  return static_cast<size_t>(std::count_if(request.headers.begin(), request.headers.end(),
                                           [&](const auto& one) { return one.first == name; }));
}

// Whether another page loads this as a subresource, such as an image or script, without an Origin
// header. Browsers report this in Sec-Fetch-Site (W3C Fetch Metadata).
bool is_part_of_another_page(const Request& request) {
  const std::string* const site = request.header("sec-fetch-site");
  const std::string* const place = request.header("sec-fetch-dest");
  const bool is_own = site == nullptr || *site == "same-origin" || *site == "none";
  return !is_own && (place == nullptr || *place != "document");
}

}  // namespace

Guard::Guard(int port, const std::vector<std::string>& names) : token_(new_secret()) {
  std::vector<std::string> all = {"127.0.0.1", "localhost", "[::1]"};
  all.insert(all.end(), names.begin(), names.end());
  for (const std::string& name : all) add_host(name, port);
}

void Guard::add_host(const std::string& name, int port) {
  constexpr int kUsualPort = 80;
  const std::string host = lower_case(name);
  const auto colons = std::count(host.begin(), host.end(), ':');
  const bool is_bare_address = colons > 1 && !host.starts_with('[');
  const bool has_port = host.starts_with('[') ? host.find("]:") != std::string::npos : colons == 1;
  const std::string bare = is_bare_address ? "[" + host + "]" : host;
  hosts_.push_back(has_port ? bare : fmt::format("{}:{}", bare, port));
  // Browsers omit the default port.
  if (!has_port && port == kUsualPort) hosts_.push_back(bare);
}

bool Guard::is_host(std::string_view text) const {
  return std::find(hosts_.begin(), hosts_.end(), lower_case(text)) != hosts_.end();
}

std::optional<Fault> Guard::refusal(const Request& request) const {
  const std::string* const host = request.header("host");
  if (host == nullptr || !is_host(*host)) {
    return Fault{403, fmt::format("unknown host '{}'; this server is {}{}",
                                  host != nullptr ? printable(*host) : "", hosts_.front(),
                                  "; --open-to adds other names")};
  }
  // Browsers send Origin with all but the simplest requests.
  const size_t origins = count(request, "origin");
  const std::string* const origin = request.header("origin");
  const bool is_of_others = origins > 0 && (origin == nullptr || !is_own_origin(*origin));
  if (is_of_others || is_part_of_another_page(request)) {
    return Fault{403, "cross-origin requests are not allowed"};
  }
  if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
  if (request.method == "POST") return refusal_of_post(request);
  return Fault{405, fmt::format("method {} is not supported", printable(request.method))};
}

std::optional<Fault> Guard::refusal_of_post(const Request& request) const {
  if (request.header("origin") == nullptr) {
    return Fault{403, "changes require this server's own page"};
  }
  const std::string* const token = request.header("x-gallop-token");
  if (token == nullptr || !is_same_secret(*token, token_)) {
    return Fault{403, "invalid token; the server may have been restarted"};
  }
  const std::string* const type = request.header("content-type");
  if (type == nullptr || !is_json(*type)) return Fault{400, "the body must be application/json"};
  return std::nullopt;
}

bool Guard::is_own_origin(std::string_view origin) const {
  constexpr std::string_view kScheme = "http://";
  return origin.starts_with(kScheme) && is_host(origin.substr(kScheme.size()));
}

void add_security_headers(Response& response) {
  response.headers.insert(
      response.headers.end(),
      {{"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"},
       {"X-Content-Type-Options", "nosniff"},
       {"X-Frame-Options", "DENY"},
       {"Referrer-Policy", "no-referrer"},
       {"Cross-Origin-Resource-Policy", "same-origin"},
       {"Cross-Origin-Opener-Policy", "same-origin"}});
}

}  // namespace gallop::ui::http
