#include "gallop/track/mlflow/client.h"

#include <cstdlib>
#include <mutex>
#include <string_view>

#include <curl/curl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::track::mlflow {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostBytes = size_t{1} << 26;  // Per response.
constexpr long kConnectSeconds = 5, kSeconds = 60;
constexpr long kTooManyRequests = 429, kFirstServerError = 500, kOk = 200;
constexpr size_t kMessageLimit = 300;  // Bytes of the server's message in errors.

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

size_t take(const char* data, size_t size, size_t count, void* answer) {
  auto& text = *static_cast<std::string*>(answer);
  if (text.size() + size * count > kMostBytes) return 0;
  text.append(data, size * count);
  return size * count;
}

// Quotes NaN and Infinity, which Python writes as bare words.
std::string with_quoted_numbers(std::string_view json) {
  std::string result;
  bool is_in_text = false;
  while (!json.empty()) {
    std::string_view taken = json.substr(0, 1);
    const char* quote = "";
    if (is_in_text) {
      if (taken == "\\") taken = json.substr(0, 2);
    } else {
      for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
        if (!json.starts_with(word)) continue;
        taken = word;
        quote = "\"";
      }
    }
    if (taken == "\"") is_in_text = !is_in_text;
    result += fmt::format("{}{}{}", quote, taken, quote);
    json.remove_prefix(taken.size());
  }
  return result;
}

// MLflow's error code and message; empty if the response is not MLflow's.
struct Refusal {
  std::string code, message;
};

Refusal refusal_of(const std::string& answer) {
  const Json json = Json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {};
  const auto text = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  return {text("error_code"), printable(text("message").substr(0, kMessageLimit))};
}

}  // namespace

class Client::Connection {
 public:
  struct Answer {
    long status = 0;
    std::string body;
  };

  explicit Connection(std::string address) : address_(std::move(address)) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    curl_ = curl_easy_init();
    if (curl_ == nullptr) throw DeviceError("libcurl cannot be used");
  }
  ~Connection() { curl_easy_cleanup(curl_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::string escaped(const std::string& text) const {
    char* const escaped = curl_easy_escape(curl_, text.data(), static_cast<int>(text.size()));
    if (escaped == nullptr) throw std::bad_alloc();
    std::string result = escaped;
    curl_free(escaped);
    return result;
  }

  // `body` is null for GET requests.
  Answer call(const std::string& url, const std::string* body) {
    Answer answer;
    curl_easy_reset(curl_);
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_TIMEOUT, kSeconds);
    set(CURLOPT_WRITEFUNCTION, &take);
    set(CURLOPT_WRITEDATA, &answer.body);
    set_credentials();
    curl_slist* headers = nullptr;
    if (body != nullptr) {
      headers = curl_slist_append(headers, "Content-Type: application/json");
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body->size()));
      set(CURLOPT_POSTFIELDS, body->data());
      set(CURLOPT_HTTPHEADER, headers);
    }
    const CURLcode code = curl_easy_perform(curl_);
    curl_slist_free_all(headers);
    if (code != CURLE_OK) {
      throw DeviceError(fmt::format("MLflow at {}: {}", address_, curl_easy_strerror(code)));
    }
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &answer.status);
    return answer;
  }

 private:
  template <typename Value>
  void set(CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(curl_, option, value);
    if (code != CURLE_OK) {
      throw UsageError(fmt::format("MLflow at {}: {}", address_, curl_easy_strerror(code)));
    }
  }

  void set_credentials() {
    const std::string token = variable("MLFLOW_TRACKING_TOKEN");
    const std::string user = variable("MLFLOW_TRACKING_USERNAME");
    if (!token.empty()) {
      set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
      set(CURLOPT_XOAUTH2_BEARER, token.c_str());
    } else if (!user.empty()) {
      set(CURLOPT_USERNAME, user.c_str());
      set(CURLOPT_PASSWORD, variable("MLFLOW_TRACKING_PASSWORD").c_str());
    }
  }

  std::string address_;
  CURL* curl_ = nullptr;
};

Client::Client(std::string address) : address_(std::move(address)) {
  while (address_.ends_with('/')) address_.pop_back();
  if (!address_.starts_with("http://") && !address_.starts_with("https://")) {
    throw UsageError(
        fmt::format("'{}' is not the address of an MLflow server, such as http://127.0.0.1:5000",
                    printable(address_)));
  }
  connection_ = std::make_unique<Connection>(printable(address_));
}

Client::~Client() = default;

namespace {

// The object in a response. Nothing if the requested item does not exist.
std::optional<Json> object_of(const std::string& address, long status, const std::string& body) {
  const std::string server = fmt::format("MLflow at {}", printable(address));
  if (status == kOk) {
    Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) {
      json = Json::parse(with_quoted_numbers(body), nullptr, /*allow_exceptions=*/false);
    }
    if (json.is_object()) return json;
    throw UsageError(printable(address) + " is not an MLflow server");
  }
  const Refusal refusal = refusal_of(body);
  if (refusal.code == "RESOURCE_DOES_NOT_EXIST") return std::nullopt;
  const std::string why =
      refusal.message.empty() ? fmt::format("HTTP status {}", status) : refusal.message;
  if (status >= kFirstServerError || status == kTooManyRequests) {
    throw DeviceError(fmt::format("{}: {}", server, why));
  }
  throw UsageError(fmt::format("{}: {}", server, why));
}

constexpr const char* kApi = "/api/2.0/mlflow/";

}  // namespace

Json Client::post(const std::string& what, const Json& body) {
  std::string refused;
  auto object = post(what, body, refused);
  if (object) return std::move(*object);
  throw UsageError(fmt::format("MLflow at {}: {}", printable(address_), refused));
}

void Client::post_if_there(const std::string& what, const Json& body) {
  std::string refused;
  post(what, body, refused);
}

std::optional<Json> Client::post(const std::string& what, const Json& body, std::string& refused) {
  const std::string text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto answer = connection_->call(address_ + kApi + what, &text);
  auto object = object_of(address_, answer.status, answer.body);
  if (!object) refused = refusal_of(answer.body).message;
  return object;
}

std::optional<Json> Client::get(const std::string& what,
                                const std::map<std::string, std::string>& parameters) {
  std::string url = address_ + kApi + what;
  char separator = '?';
  for (const auto& [name, value] : parameters) {
    url += separator + name + '=' + connection_->escaped(value);
    separator = '&';
  }
  const auto answer = connection_->call(url, nullptr);
  return object_of(address_, answer.status, answer.body);
}

}  // namespace gallop::track::mlflow
