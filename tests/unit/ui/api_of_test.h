#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/ui/api/api.h"
#include "gallop/ui/http/target.h"
#include "unit/track/runs_of_test.h"

namespace gallop::ui::api {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

/// The API on folders of runs, of sweeps, and of searches.
class Api : public testing::Test {
 protected:
  track::RunsOfTest folder;
  TemporaryFolder studies{fs::temp_directory_path(), "gallop-studies-"};
  TemporaryFolder searches{fs::temp_directory_path(), "gallop-searches-"};
  track::Surroundings surroundings{};

  // The response of an endpoint, which must have this `status`.
  std::string text(const std::string& target, int status = 200) {
    const http::Target parsed = http::parse_target("/api/" + target);
    return ask({.method = "GET", .path = parsed.path, .query = parsed.query}, status);
  }
  Json get(const std::string& target) { return Json::parse(text(target)); }
  std::string error(const std::string& target, int status) {
    return Json::parse(text(target, status)).at("error");
  }
  Json post(const std::string& name, const std::string& body, int status = 200) {
    return Json::parse(ask({.method = "POST", .path = "/api/" + name, .body = body}, status));
  }

  std::string ask(const http::Request& request, int status) {
    if (!runs_) {
      runs_ = std::make_unique<Runs>(track::RunLocations{folder.path(), studies.path()});
      sweeps_ = std::make_unique<Sweeps>(studies.path());
      searches_ = std::make_unique<Searches>(searches.path());
      events_ = std::make_unique<EventHub>(*runs_, *sweeps_, *searches_);
    }
    runs_->look_again();
    Context context{*runs_, *sweeps_, *searches_, *events_, "the token", "1.2.3", surroundings};
    const http::Response response = answer(context, request);
    EXPECT_EQ(response.status, status) << request.path << ": " << response.body;
    return response.body;
  }

 private:
  std::unique_ptr<Runs> runs_;
  std::unique_ptr<Sweeps> sweeps_;
  std::unique_ptr<Searches> searches_;
  std::unique_ptr<EventHub> events_;
};

inline Names names_of(const Json& table) {
  Names names;
  for (const Json& run : table.at("runs")) names.push_back(run.at("name"));
  return names;
}

}  // namespace gallop::ui::api
