#include "gallop/track/mlflow/push.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/config/json_numbers.h"
#include "gallop/track/foreign_run.h"
#include "gallop/track/identity.h"
#include "gallop/track/labels.h"
#include "gallop/track/log_follower.h"
#include "gallop/track/mlflow/client.h"
#include "gallop/track/points.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/run_locations.h"
#include "gallop/track/run_summary.h"

namespace gallop::track::mlflow {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kFileBytes = 1 << 20;
// Limits of MLflow per call, and of names and values.
constexpr size_t kMostMetrics = 1000, kMostParams = 100;
constexpr size_t kNameBytes = 250, kValueBytes = 6000, kTagBytes = 5000;

// Replaces characters that MLflow does not allow.
std::string name_for_mlflow(std::string name) {
  for (char& letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) == 0 && std::string_view("_-. /").find(letter) == std::string::npos) {
      letter = '_';
    }
  }
  name.resize(std::min(name.size(), kNameBytes));
  return name;
}

std::string cut(const std::string& text, size_t bytes) {
  return text.size() <= bytes ? text : text.substr(0, bytes - 3) + "...";
}

int64_t milliseconds(double seconds) { return static_cast<int64_t>(1e3 * seconds); }

Json pair_of(const std::string& name, const std::string& value, size_t bytes) {
  return {{"key", name_for_mlflow(name)}, {"value", cut(value, bytes)}};
}

std::string user_name() {
  const passwd* const user = getpwuid(geteuid());
  return user != nullptr ? user->pw_name : "";
}

// Tags that MLflow's own clients set.
std::map<std::string, std::string> tags_of(const fs::path& run) {
  const Labels labels = read_labels(run);
  std::map<std::string, std::string> tags = labels.tags;
  if (const std::string sweep = sweep_of(run_name_of(run)); !sweep.empty()) {
    tags.emplace("sweep", sweep);
  }
  // Tags without a value are words of the user; those that follow are not known then.
  const std::map<std::string, std::string> given = tags;
  tags["mlflow.user"] = user_name();
  tags["mlflow.source.type"] = "LOCAL";
  if (!labels.note.empty()) tags["mlflow.note.content"] = labels.note;
  const RunInfo info = RunFolder::read_info(run);
  tags["mlflow.source.name"] = shell_line(info.command_line);
  tags["gallop.version"] = info.version;
  const auto identities = read_identities(run);
  if (!identities.empty() && identities.back().code) {
    tags["mlflow.source.git.commit"] = identities.back().code->commit;
    tags["mlflow.source.git.branch"] = identities.back().code->branch;
  }
  std::erase_if(tags,
                [&](const auto& tag) { return tag.second.empty() && !given.contains(tag.first); });
  return tags;
}

}  // namespace

// The progress with one server and experiment.
class Push::State {
 public:
  State(const fs::path& run, const Target& target)
      : run_(run), client_(target.address), experiment_(target.experiment), log_(log_path()) {
    load();
  }

  int64_t send() {
    if (!has_params_) {
      const RunSummary summary = summarize_run(run_);
      if (id_.empty()) create(summary);
      send_params(summary);
    }
    send_tags();
    const int64_t points = send_points();
    send_status();
    return points;
  }

 private:
  // What is sent in one call.
  struct Batch {
    Json metrics = Json::array();
    int64_t records = 0;  ///< Unsent records.
    int64_t last = -1;    ///< Offset of the last of them.
    int64_t sent = 0;     ///< Points in earlier batches.
  };

  fs::path file() const { return run_ / "mlflow.json"; }
  fs::path log_path() const { return run_ / "metrics.log"; }

  // Other targets' entries are preserved.
  Json read_places() const {
    if (!fs::exists(file())) return Json::array();
    Json places = Json::parse(read_file(file(), kFileBytes), nullptr, /*allow_exceptions=*/false);
    if (!places.is_array()) {
      throw DataError(fmt::format("{}: damaged; delete it to send the run as a new one",
                                  printable(file().string())));
    }
    return places;
  }

  bool is_this(const Json& place) const {
    return place.value("address", "") == client_.address() &&
           place.value("experiment", "") == experiment_;
  }

  void load() {
    try {
      for (const Json& place : read_places()) {
        if (!is_this(place)) continue;
        id_ = place.at("run_id");
        last_sent_ = place.at("last_sent");
        has_params_ = place.at("has_params");
        status_ = place.at("status");
        ending_ = place.at("ending");
        time_ = place.at("time");
        place.at("tags").get_to(tags_);
      }
    } catch (const Json::exception&) {
      throw DataError(fmt::format("{}: damaged; delete it to send the run as a new one",
                                  printable(file().string())));
    }
  }

  void save() const {
    Json places = Json::array();
    for (Json& place : read_places()) {
      if (!is_this(place)) places.push_back(std::move(place));
    }
    places.push_back({{"address", client_.address()},
                      {"experiment", experiment_},
                      {"run_id", id_},
                      {"last_sent", last_sent_},
                      {"has_params", has_params_},
                      {"status", status_},
                      {"ending", ending_},
                      {"time", time_},
                      {"tags", tags_}});
    write_file_atomically(file(), places.dump(1) + "\n");
  }

  std::string experiment_id() {
    const auto there = client_.get("experiments/get-by-name", {{"experiment_name", experiment_}});
    const Json answer = there ? there->at("experiment")
                              : client_.post("experiments/create", {{"name", experiment_}});
    return answer.at("experiment_id");
  }

  void create(const RunSummary& summary) {
    const Json answer =
        client_.post("runs/create", {{"experiment_id", experiment_id()},
                                     {"run_name", summary.name},
                                     {"start_time", milliseconds(summary.created)}});
    id_ = answer.at("run").at("info").at("run_id");
    status_ = "RUNNING";
    save();
  }

  void send_params(const RunSummary& summary) {
    Json params = Json::array();
    const auto send = [&] {
      client_.post("runs/log-batch",
                   {{"run_id", id_}, {"params", std::exchange(params, Json::array())}});
    };
    for (const auto& [name, value] : summary.params) {
      params.push_back(pair_of(name, value, kValueBytes));
      if (params.size() == kMostParams) send();
    }
    if (!params.empty()) send();
    has_params_ = true;
    save();
  }

  void send_tags() {
    const auto wanted = tags_of(run_);
    for (const auto& [name, value] : wanted) {
      const auto there = tags_.find(name);
      if (there != tags_.end() && there->second == value) continue;
      Json tag = pair_of(name, value, kTagBytes);
      tag["run_id"] = id_;
      client_.post("runs/set-tag", tag);
      tags_[name] = value;
      save();
    }
    const std::map<std::string, std::string> sent = tags_;
    for (const auto& [name, value] : sent) {
      if (wanted.contains(name)) continue;
      // It may be gone already: deleted there, or by a call whose answer was lost.
      client_.post_if_there("runs/delete-tag", {{"run_id", id_}, {"key", name_for_mlflow(name)}});
      tags_.erase(name);
      save();
    }
  }

  int64_t send_points() {
    Batch batch;
    try {
      log_.read({.restart = [this] { last_sent_ = -1; },
                 .record =
                     [&](const Record& record, int64_t offset) {
                       if (offset <= last_sent_) return;
                       add(record, offset, batch);
                       if (batch.metrics.size() >= kMostMetrics) send(batch);
                     }});
      if (batch.records > 0) send(batch);
    } catch (...) {
      log_ = LogFollower(log_path());  // Unsent records are read again.
      throw;
    }
    return batch.sent;
  }

  void add(const Record& record, int64_t offset, Batch& batch) {
    for_each_point(record, [&](const Point& point) {
      batch.metrics.push_back({{"key", name_for_mlflow(foreign_name(point.metric))},
                               {"value", config::spelled_number_json(point.value)},
                               {"timestamp", milliseconds(point.time)},
                               {"step", point.step}});
    });
    batch.last = offset;
    batch.records += 1;
    follow(record);
  }

  void send(Batch& batch) {
    const Json metrics = std::exchange(batch.metrics, Json::array());
    for (size_t begin = 0; begin < metrics.size(); begin += kMostMetrics) {
      const size_t end = std::min(metrics.size(), begin + kMostMetrics);
      const auto first = metrics.begin() + static_cast<Json::difference_type>(begin);
      const auto last = metrics.begin() + static_cast<Json::difference_type>(end);
      client_.post("runs/log-batch",
                   {{"run_id", id_}, {"metrics", Json(Json::array_t(first, last))}});
    }
    batch.sent += static_cast<int64_t>(metrics.size());
    batch.records = 0;
    last_sent_ = batch.last;
    save();
  }

  void follow(const Record& record) {
    time_ = record.time;
    ending_.clear();
    if (record.kind != "end") return;
    const RunState state = state_of_end(record);
    ending_ = state == RunState::kFinished ? "FINISHED"
              : state == RunState::kFailed ? "FAILED"
                                           : "KILLED";
  }

  void send_status() {
    std::string status = ending_;
    if (status.empty()) status = RunFolder::is_trained(run_) ? "RUNNING" : "FAILED";
    if (status == status_) return;
    Json update = {{"run_id", id_}, {"status", status}};
    if (status != "RUNNING") update["end_time"] = milliseconds(time_);
    client_.post("runs/update", update);
    status_ = status;
    save();
  }

  fs::path run_;
  Client client_;
  std::string experiment_;
  std::string id_, status_;
  LogFollower log_;
  int64_t last_sent_ = -1;  // Offset of the last sent record in the log.
  std::string ending_;      // MLflow's status if the last sent record is an end.
  double time_ = 0;         // Time of the last sent record.
  bool has_params_ = false;
  std::map<std::string, std::string> tags_;
};

void check_address(const std::string& address) { Client{address}; }

Push::Push(const fs::path& run, const Target& target)
    : address_(target.address), state_(std::make_unique<State>(run, target)) {}

Push::~Push() = default;

int64_t Push::send() {
  try {
    return state_->send();
  } catch (const Json::exception&) {
    throw UsageError(fmt::format("{} is not an MLflow server", printable(address_)));
  }
}

}  // namespace gallop::track::mlflow
