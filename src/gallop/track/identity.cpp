#include "gallop/track/identity.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"
#include "gallop/track/links.h"

namespace gallop::track {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFile = "identity.json";
constexpr size_t kNameDigits = 16;

// Works even if the program's file was deleted.
std::string program_checksum(const fs::path& cache) {
  const fs::path link = "/proc/self/exe";
  std::error_code error;
  const fs::path file = fs::read_symlink(link, error);
  if (!error && fs::exists(file, error)) {
    return ContentReader(cache).read(file).files.front().checksum;
  }
  return xxh3_128(MappedFile(link).bytes());
}

// The file name of a patch, derived from its content.
std::string patch_name(const std::string& patch) {
  return patch.empty() ? "" : "code-" + xxh3_128(patch).substr(0, kNameDigits) + ".patch";
}

Json to_json(const std::vector<DataIdentity>& all) {
  Json json = Json::array();
  for (const DataIdentity& data : all) {
    json.push_back({{"path", data.path},
                    {"files", data.files},
                    {"bytes", data.bytes},
                    {"xxh3_128", data.checksum}});
    if (data.is_named) json.back()["named"] = true;
  }
  return json;
}

std::vector<DataIdentity> data_from_json(const Json& json) {
  std::vector<DataIdentity> all;
  for (const Json& stored : json) {
    DataIdentity& data = all.emplace_back();
    stored.at("path").get_to(data.path);
    stored.at("files").get_to(data.files);
    stored.at("bytes").get_to(data.bytes);
    stored.at("xxh3_128").get_to(data.checksum);
    data.is_named = stored.value("named", false);
  }
  return all;
}

Json to_json(const Identity& identity) {
  Json json{{"step", identity.step}, {"version", identity.version}, {"program", identity.program}};
  if (!identity.plugins.empty()) json["plugins"] = to_json(identity.plugins);
  if (!identity.models.empty()) json["models"] = to_json(identity.models);
  if (identity.code) {
    const CodeState& code = *identity.code;
    json["code"] = {{"folder", code.folder},           {"commit", code.commit},
                    {"branch", code.branch},           {"remote", code.remote},
                    {"patch", patch_name(code.patch)}, {"patch_bytes", code.patch_bytes},
                    {"left_out", code.left_out}};
  }
  json["data"] = to_json(identity.data);
  return json;
}

Identity from_json(const Json& json, const fs::path& run) {
  Identity identity;
  json.at("step").get_to(identity.step);
  json.at("version").get_to(identity.version);
  json.at("program").get_to(identity.program);
  if (json.contains("code")) {
    const Json& stored = json.at("code");
    CodeState& code = identity.code.emplace();
    stored.at("folder").get_to(code.folder);
    stored.at("commit").get_to(code.commit);
    stored.at("branch").get_to(code.branch);
    stored.at("remote").get_to(code.remote);
    stored.at("patch_bytes").get_to(code.patch_bytes);
    stored.at("left_out").get_to(code.left_out);
    const auto patch = stored.at("patch").get<std::string>();
    // The file name is untrusted; only a file of the run is read.
    const fs::path file = run / fs::path(patch).filename();
    if (!patch.empty() && !is_link(file)) code.patch = read_file(file);
  }
  if (json.contains("plugins")) identity.plugins = data_from_json(json.at("plugins"));
  if (json.contains("models")) identity.models = data_from_json(json.at("models"));
  identity.data = data_from_json(json.at("data"));
  return identity;
}

DataIdentity identity_of(const std::string& path, const Content& content,
                         const IdentityQuestion& question) {
  DataIdentity data{.path = path,
                    .files = static_cast<int64_t>(content.files.size()),
                    .bytes = content.bytes(),
                    .checksum = content.is_read() ? content.checksum() : std::string()};
  if (!data.checksum.empty() && !question.listings.empty()) {
    const fs::path listing = question.listings / (data.checksum + ".txt");
    if (!fs::exists(listing)) {
      make_folders(question.listings);
      write_file_atomically(listing, content.listing());
    }
  }
  return data;
}

}  // namespace

DataIdentity read_data_identity(const std::string& path, const IdentityQuestion& question) {
  return identity_of(path, ContentReader(question.cache).read(path, question.limits), question);
}

DataIdentity read_data_identity(const NamedFiles& files, const IdentityQuestion& question) {
  DataIdentity data = identity_of(
      files.folder, ContentReader(question.cache).read(files, question.limits), question);
  data.is_named = true;
  return data;
}

Identity read_identity(const IdentityQuestion& question) {
  Identity identity;
  identity.step = question.step;
  identity.version = question.version;
  identity.program = program_checksum(question.cache);
  identity.code = read_code_state(question.folder);
  IdentityQuestion rest = question;
  rest.listings.clear();
  for (const std::string& path : question.plugins) {
    identity.plugins.push_back(read_data_identity(path, rest));
  }
  identity.models = question.known_models;
  if (identity.models.empty()) {
    for (const std::string& path : question.models) {
      identity.models.push_back(read_data_identity(path, rest));
    }
  }
  rest.listings = question.listings;
  for (const std::string& path : question.data) {
    identity.data.push_back(read_data_identity(path, rest));
    rest.limits.bytes -= identity.data.back().bytes;
  }
  for (const NamedFiles& files : question.named_data) {
    identity.data.push_back(read_data_identity(files, rest));
    rest.limits.bytes -= identity.data.back().bytes;
  }
  return identity;
}

fs::path listings_of(const fs::path& runs) { return runs / ".data"; }

std::vector<Identity> read_identities(const fs::path& run) {
  const fs::path file = run / kFile;
  std::vector<Identity> identities;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return identities;
  try {
    for (const Json& one : Json::parse(read_file(file))) identities.push_back(from_json(one, run));
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: not a run identity: {}", printable(file.string()),
                                printable(error.what())));
  }
  return identities;
}

void add_identity(const fs::path& run, const Identity& identity) {
  std::vector<Identity> all;
  try {
    all = read_identities(run);
  } catch (const DataError&) {
    // A damaged file is replaced by the present identity.
  }
  if (!all.empty()) {
    Identity last = all.back();
    last.step = identity.step;
    if (to_json(last) == to_json(identity)) return;
  }
  if (identity.code && !identity.code->patch.empty()) {
    write_file_atomically(run / patch_name(identity.code->patch), identity.code->patch);
  }
  Json json = Json::array();
  for (const Identity& one : all) json.push_back(to_json(one));
  json.push_back(to_json(identity));
  write_file_atomically(run / kFile,
                        json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

IdentityRecorder::IdentityRecorder(fs::path run, IdentityQuestion question) : run_(std::move(run)) {
  question.limits.stop = [this] { return is_stopped_.load(); };
  thread_ = std::thread([this, question = std::move(question)] { record(question); });
}

IdentityRecorder::~IdentityRecorder() {
  is_stopped_ = true;
  if (thread_.joinable()) thread_.join();
}

void IdentityRecorder::record(const IdentityQuestion& question) {
  prctl(PR_SET_NAME, "identity");
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
  try {
    const Identity identity = read_identity(question);
    if (!is_stopped_) add_identity(run_, identity);
  } catch (const std::exception& error) {
    trouble_ = printable(error.what());
  }
  is_done_.set_value();
}

std::string IdentityRecorder::finish_within(double seconds) {
  const auto done = is_done_.get_future();
  if (done.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready) {
    is_stopped_ = true;
  }
  return finish();
}

std::string IdentityRecorder::finish() {
  if (thread_.joinable()) thread_.join();
  return trouble_;
}

}  // namespace gallop::track
