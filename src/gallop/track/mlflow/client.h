#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace gallop::track::mlflow {

/// A server of MLflow, by version 2.0 of its REST interface. Calls throw DeviceError where it
/// cannot be reached or is not able to answer now, so that the same call may succeed later, and
/// UsageError where it refuses.
class Client {
 public:
  /// `address` as in "http://127.0.0.1:5000". As MLflow's own clients, it shows the server
  /// MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD. Throws
  /// UsageError where this is no address.
  explicit Client(std::string address);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const std::string& address() const { return address_; }

  /// "runs/create" and an object for it.
  nlohmann::ordered_json post(const std::string& what, const nlohmann::ordered_json& body);
  /// "metrics/get-history" and its parameters; nothing where there is no such thing there.
  std::optional<nlohmann::ordered_json> get(const std::string& what,
                                            const std::map<std::string, std::string>& parameters);

 private:
  class Connection;

  std::string address_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace gallop::track::mlflow
