#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/track/footprint.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/http/guard.h"
#include "gallop/ui/http/message.h"
#include "gallop/ui/runs.h"
#include "gallop/ui/searches.h"

namespace gallop::ui {

struct SiteConfig {
  fs::path runs;                       ///< Folder of the runs.
  fs::path studies{};                  ///< Folder of the sweeps; may be missing.
  fs::path searches{};                 ///< Folder of the searches; may be missing.
  std::string version;                 ///< Gallop's version.
  int port = 0;                        ///< Port at which it is reachable.
  std::vector<std::string> names{};    ///< See http::Guard.
  track::Surroundings surroundings{};  ///< Converts energy to CO2 and cost.
};

/// The page and its API, without sockets.
class Site {
 public:
  /// Throws UsageError if neither folder exists.
  explicit Site(const SiteConfig& config);

  /// The response to a forbidden or malformed request; nothing for all others.
  std::optional<http::Response> refuse(const http::Request& request) const;
  /// The response to an allowed request.
  http::Response answer(const http::Request& request);

 private:
  struct File {
    std::string_view bytes, type;
    std::string tag;  ///< Its ETag.
  };

  http::Response file_response(const File& file, const http::Request& request) const;

  Runs runs_;
  Sweeps sweeps_;
  Searches searches_;
  api::EventHub events_;
  http::Guard guard_;
  api::Context context_;
  std::map<std::string, File, std::less<>> files_;
};

}  // namespace gallop::ui
