#include "gallop/track/labels.h"

#include <functional>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/trash.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/run_choice.h"

namespace gallop::ui::api {

namespace {

constexpr size_t kMostTextBytes = size_t{60} << 10;

Json body_of(const http::Request& request) {
  Json body = Json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  if (!body.is_object()) throw UsageError("the body is not a JSON object");
  return body;
}

std::string text_of(const Json& body, const char* name) {
  const auto found = body.find(name);
  if (found == body.end() || !found->is_string()) {
    throw UsageError(fmt::format("'{}' is required and must be a string", name));
  }
  auto text = found->get<std::string>();
  if (text.size() > kMostTextBytes) {
    throw UsageError(fmt::format("'{}' is longer than {}", name, format_bytes(kMostTextBytes)));
  }
  return text;
}

// The folder of the run that the body names, from the index.
fs::path folder_of(Context& context, const Json& body) {
  return context.runs.path_of(row_of(context.runs, text_of(body, "run")).name);
}

http::Response change_labels(Context& context, const Json& body,
                             const std::function<void(track::Labels&)>& change) {
  track::change_labels(folder_of(context, body), change);
  context.runs.look_again();
  return json_response(Json::object());
}

// The original folder of a deleted run; empty if it is in no trash.
fs::path folder_of_deleted(const track::RunLocations& locations, const std::string& name) {
  for (const auto& part : locations.parts()) {
    for (const std::string& deleted : track::names_in_trash(part.folder)) {
      if (part.prefix + deleted == name) return part.folder;
    }
  }
  return {};
}

}  // namespace

http::Response tag(Context& context, const http::Request& request) {
  const Json body = body_of(request);
  const std::string key = text_of(body, "key");
  if (track::parse_tag(key).first != key) {
    throw UsageError(fmt::format("'{}' is not a valid tag name: it contains '='", printable(key)));
  }
  const auto value = body.find("value");
  if (value == body.end()) {
    throw UsageError("'value' is required: a string, or null to remove the tag");
  }
  return change_labels(context, body, [&](track::Labels& labels) {
    if (value->is_null()) {
      labels.tags.erase(key);
    } else {
      labels.tags[key] = text_of(body, "value");
    }
  });
}

http::Response note(Context& context, const http::Request& request) {
  const Json body = body_of(request);
  const std::string text = text_of(body, "text");
  return change_labels(context, body, [&](track::Labels& labels) { labels.note = text; });
}

http::Response delete_run(Context& context, const http::Request& request) {
  track::move_to_trash(folder_of(context, body_of(request)));
  context.runs.look_again();
  return json_response(Json::object());
}

http::Response restore_run(Context& context, const http::Request& request) {
  const std::string name = text_of(body_of(request), "run");
  const fs::path folder = folder_of_deleted(context.runs.locations(), name);
  if (folder.empty()) {
    throw Refusal(404, fmt::format("run '{}' is not in the trash", printable(name)));
  }
  track::restore_from_trash(folder, fs::path(name).filename().string());
  context.runs.look_again();
  return json_response(Json::object());
}

}  // namespace gallop::ui::api
