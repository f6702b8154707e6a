#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace gallop::track::mlflow {

/// A client of an MLflow server (REST API 2.0). Calls throw DeviceError if it cannot be reached or
/// is temporarily unavailable, so that a retry may succeed, and UsageError if it rejects the
/// request.
class Client {
 public:
  /// `address` as in "http://127.0.0.1:5000". As MLflow's own clients, it shows the server
  /// Authenticates with MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and
  /// MLFLOW_TRACKING_PASSWORD. Throws UsageError for an invalid address.
  explicit Client(std::string address);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const std::string& address() const { return address_; }

  /// Calls an endpoint such as "runs/create" with a JSON object.
  nlohmann::ordered_json post(const std::string& what, const nlohmann::ordered_json& body);
  /// The same for an item that need not exist.
  void post_if_there(const std::string& what, const nlohmann::ordered_json& body);
  /// Calls an endpoint such as "metrics/get-history"; nothing if the item does not exist.
  std::optional<nlohmann::ordered_json> get(const std::string& what,
                                            const std::map<std::string, std::string>& parameters);

 private:
  class Connection;

  // Nothing, and why, if the item does not exist.
  std::optional<nlohmann::ordered_json> post(const std::string& what,
                                             const nlohmann::ordered_json& body,
                                             std::string& refused);

  std::string address_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace gallop::track::mlflow
