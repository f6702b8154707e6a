#include "gallop/ui/http/guard.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::ui::http {

namespace {

constexpr size_t kTokenBytes = 32;

std::string random_token() {
  std::array<unsigned char, kTokenBytes> bytes{};
  // So few bytes come at once.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw DeviceError(fmt::format("the system has no random numbers: {}",
                                  std::generic_category().message(errno)));
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

bool is_json(std::string_view type) {
  constexpr std::string_view kJson = "application/json";
  const std::string_view word = type.substr(0, type.find(';'));
  return word.substr(0, word.find_last_not_of(' ') + 1) == kJson;
}

size_t count(const Request& request, std::string_view name) {
  return static_cast<size_t>(std::count_if(request.headers.begin(), request.headers.end(),
                                           [&](const auto& one) { return one.first == name; }));
}

}  // namespace

Guard::Guard(int port, const std::vector<std::string>& names) : token_(random_token()) {
  std::vector<std::string> all = {"127.0.0.1", "localhost", "[::1]"};
  all.insert(all.end(), names.begin(), names.end());
  for (const std::string& name : all) hosts_.push_back(fmt::format("{}:{}", name, port));
}

std::optional<Fault> Guard::refusal(const Request& request) const {
  const std::string* const host = request.header("host");
  if (host == nullptr || std::find(hosts_.begin(), hosts_.end(), *host) == hosts_.end()) {
    return Fault{403, fmt::format("this server is not '{}'; it is {}{}",
                                  host != nullptr ? printable(*host) : "", hosts_.front(),
                                  ", and takes other names by --open-to")};
  }
  // Browsers send it with all but the plainest requests.
  const size_t origins = count(request, "origin");
  const std::string* const origin = request.header("origin");
  if (origins > 0 && (origin == nullptr || !is_own_origin(*origin))) {
    return Fault{403, "only this server's own page may ask"};
  }
  if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
  if (request.method == "POST") return refusal_of_post(request);
  return Fault{405, fmt::format("there is no {} here", printable(request.method))};
}

std::optional<Fault> Guard::refusal_of_post(const Request& request) const {
  if (request.header("origin") == nullptr) {
    return Fault{403, "only this server's own page may change something"};
  }
  const std::string* const token = request.header("x-gallop-token");
  if (token == nullptr || !is_same_secret(*token, token_)) {
    return Fault{403, "the token is not this server's, which may have been started again"};
  }
  const std::string* const type = request.header("content-type");
  if (type == nullptr || !is_json(*type)) return Fault{400, "the body must be application/json"};
  return std::nullopt;
}

bool Guard::is_own_origin(std::string_view origin) const {
  constexpr std::string_view kScheme = "http://";
  return origin.starts_with(kScheme) &&
         std::find(hosts_.begin(), hosts_.end(), origin.substr(kScheme.size())) != hosts_.end();
}

bool is_same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
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
