#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gallop/ui/http/message.h"

namespace gallop::ui::api {

/// The parameters of a request's query string. Errors are UsageErrors that name the parameter.
class Query {
 public:
  explicit Query(const http::Request& request) : values_(request.query) {}

  /// Empty if absent.
  std::string text(const std::string& name) const;
  /// Throws if absent.
  std::string needed(const std::string& name) const;
  bool flag(const std::string& name) const;  ///< 1 or 0.
  std::optional<double> number(const std::string& name) const;
  int64_t count(const std::string& name, int64_t least, int64_t most, int64_t otherwise) const;
  /// Comma-separated names. A name for which `is_known` is true may contain commas.
  std::vector<std::string> names(const std::string& name,
                                 const std::function<bool(const std::string&)>& is_known) const;

 private:
  const std::map<std::string, std::string>& values_;
};

}  // namespace gallop::ui::api
