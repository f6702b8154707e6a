#include "gallop/launch/rendezvous/message.h"

#include <cstdint>
#include <limits>

#include <nlohmann/json.hpp>

namespace gallop::launch {

namespace {

using Json = nlohmann::ordered_json;

struct Range {
  int least, most;
};
constexpr int kLargest = std::numeric_limits<int>::max();

/// Reads and validates the fields of a message; exceptions of Json are errors as well.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {}

  bool is_good() const { return is_good_; }
  void operator()(const char* name, std::string& text) { text = object_.at(name); }
  void operator()(const char* name, bool& value) { value = object_.at(name).get<bool>(); }
  void operator()(const char* name, int& number, Range range) {
    const auto value = object_.at(name).get<int64_t>();
    is_good_ = is_good_ && object_.at(name).is_number_integer() && value >= range.least &&
               value <= range.most;
    number = static_cast<int>(value);
  }
  void operator()(const char* name, double& number) {
    number = object_.at(name).get<double>();
    is_good_ = is_good_ && number >= 0;
  }
  template <typename Enum>
  void operator()(const char* name, Enum& value, Enum last) {
    int number = 0;
    (*this)(name, number, {0, static_cast<int>(last)});
    value = static_cast<Enum>(number);
  }

 private:
  const Json& object_;
  bool is_good_ = true;
};

class Writer {
 public:
  explicit Writer(Json& object) : object_(object) {}

  template <typename Type>
  void operator()(const char* name, const Type& value) {
    object_[name] = value;
  }
  void operator()(const char* name, int number, Range /*range*/) { object_[name] = number; }
  template <typename Enum>
  void operator()(const char* name, Enum value, Enum /*last*/) {
    object_[name] = static_cast<int>(value);
  }

 private:
  Json& object_;
};

// The name and the fields of each kind of message.
const char* kind_of(const Ask&) { return "ask"; }
const char* kind_of(const CoordinatorReply&) { return "here"; }
const char* kind_of(const Join&) { return "join"; }
const char* kind_of(const Alive&) { return "alive"; }
const char* kind_of(const Start&) { return "start"; }
const char* kind_of(const RunAt&) { return "run"; }
const char* kind_of(const Stop&) { return "stop"; }
const char* kind_of(const Ended&) { return "ended"; }
const char* kind_of(const Leave&) { return "leave"; }
const char* kind_of(const Redirect&) { return "elsewhere"; }
const char* kind_of(const Finish&) { return "finish"; }

template <typename Visit>
void visit_fields(Visit&, Ask&) {}
template <typename Visit>
void visit_fields(Visit&, Leave&) {}
template <typename Visit>
void visit_fields(Visit&, Redirect&) {}
template <typename Visit>
void visit_fields(Visit& visit, CoordinatorReply& here) {
  visit("standing", here.coordinator_phase, CoordinatorPhase::kRunning);
}
template <typename Visit>
void visit_fields(Visit& visit, Join& join) {
  visit("protocol", join.protocol, {0, kLargest});
  visit("id", join.id);
  visit("host", join.host);
  visit("processes", join.processes, {1, kMostProcessesOfHost});
  visit("command", join.command);
  visit("attempt", join.attempt, {-1, kLargest - 1});
  visit("restarts", join.restarts, {0, kLargest - 1});
  visit("run", join.run);
}
template <typename Visit>
void visit_fields(Visit& visit, Alive& alive) {
  visit("running", alive.running);
}
template <typename Visit>
void visit_fields(Visit& visit, Start& start) {
  visit("attempt", start.attempt, {0, kLargest - 1});
  visit("restarts", start.restarts, {0, kLargest - 1});
  visit("first_rank", start.first_rank, {0, kLargest});
  visit("world_size", start.world_size, {1, kLargest});
  visit("host_index", start.host_index, {0, kLargest});
  visit("hosts", start.hosts, {1, kLargest});
  visit("address", start.address);
  visit("port", start.port, {1, 65535});
  visit("run", start.run);
}
template <typename Visit>
void visit_fields(Visit& visit, RunAt& run) {
  visit("folder", run.folder);
}
template <typename Visit>
void visit_fields(Visit& visit, Stop& stop) {
  visit("grace", stop.grace);
}
template <typename Visit>
void visit_fields(Visit& visit, Ended& ended) {
  visit("attempt", ended.attempt, {0, kLargest - 1});
  visit("code", ended.code, ExitCode::kStopped);
  visit("failure", ended.failure);
}
template <typename Visit>
void visit_fields(Visit& visit, Finish& finish) {
  visit("code", finish.code, ExitCode::kStopped);
  visit("text", finish.text);
}

// Finds the alternative of this kind.
template <size_t kIndex = 0>
std::optional<Message> read_kind(const std::string& kind, const Json& object) {
  if constexpr (kIndex == std::variant_size_v<Message>) {
    return std::nullopt;
  } else {
    std::variant_alternative_t<kIndex, Message> message;
    if (kind != kind_of(message)) return read_kind<kIndex + 1>(kind, object);
    Reader reader(object);
    visit_fields(reader, message);
    return reader.is_good() ? std::optional<Message>(message) : std::nullopt;
  }
}

}  // namespace

std::string to_line(const Message& message) {
  Json object;
  std::visit(
      [&](auto one) {
        object["kind"] = kind_of(one);
        Writer writer(object);
        visit_fields(writer, one);
      },
      message);
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Message> parse_message(std::string_view line) {
  try {
    const Json object = Json::parse(line);
    return read_kind(object.at("kind"), object);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace gallop::launch
