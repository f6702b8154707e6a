#include "gallop/ui/site.h"

#include <fmt/format.h>

#include "gallop/base/hash.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/page_files.h"

namespace gallop::ui {

namespace {

std::string_view type_of(std::string_view path) {
  if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (path.ends_with(".css")) return "text/css; charset=utf-8";
  if (path.ends_with(".svg")) return "image/svg+xml";
  return "text/html; charset=utf-8";
}

http::Response finished(http::Response response, const char* caching) {
  response.headers.emplace_back("Cache-Control", caching);
  http::add_security_headers(response);
  return response;
}

}  // namespace

Site::Site(const SiteConfig& config)
    : runs_({.runs = config.runs, .studies = config.studies}),
      sweeps_(config.studies),
      searches_(config.searches),
      events_(runs_, sweeps_, searches_),
      guard_(config.port, config.names),
      context_{runs_,          sweeps_,        searches_,          events_,
               guard_.token(), config.version, config.surroundings} {
  for (const PageFile& file : page_files()) {
    files_[std::string(file.path)] = {.bytes = file.bytes,
                                      .type = type_of(file.path),
                                      .tag = fmt::format("\"{}\"", xxh3_128(file.bytes))};
  }
}

std::optional<http::Response> Site::refuse(const http::Request& request) const {
  std::optional<http::Fault> fault = request.fault;
  // Forbidden requests get no other response.
  if (auto refused = guard_.refusal(request)) fault = std::move(refused);
  if (!fault) return std::nullopt;
  http::Response response = api::error_response(fault->status, fault->message);
  if (fault->status == 405) response.headers.emplace_back("Allow", "GET, HEAD, POST");
  return finished(std::move(response), "no-store");
}

http::Response Site::answer(const http::Request& request) {
  const auto file = files_.find(request.path);
  const bool is_read = request.method != "POST";
  if (file != files_.end() && is_read) {
    return finished(file_response(file->second, request), "no-cache");
  }
  return finished(api::answer(context_, request), "no-store");
}

http::Response Site::file_response(const File& file, const http::Request& request) const {
  http::Response response{.type = std::string(file.type)};
  response.headers.emplace_back("ETag", file.tag);
  const std::string* const known = request.header("if-none-match");
  if (known != nullptr && *known == file.tag) {
    response.status = 304;
  } else {
    response.body = file.bytes;
  }
  return response;
}

}  // namespace gallop::ui
