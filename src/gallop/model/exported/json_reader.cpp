#include "gallop/model/exported/json_reader.h"

#include <limits>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::model::exported {

namespace {

constexpr size_t kMaxBytes = 100'000'000;
constexpr int kMaxDepth = 256;

// Follows the parser to limit the depth and to find repeated keys, of which nlohmann's objects
// would silently keep one.
class Structure {
 public:
  explicit Structure(const Place& place) : place_(place) {}

  bool operator()(Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start: keys_.emplace_back(); [[fallthrough]];
      case Json::parse_event_t::array_start:
        if (++depth_ > kMaxDepth) place_.fail(fmt::format("JSON of over {} levels", kMaxDepth));
        break;
      case Json::parse_event_t::object_end: keys_.pop_back(); [[fallthrough]];
      case Json::parse_event_t::array_end: --depth_; break;
      case Json::parse_event_t::key:
        if (const auto& key = parsed.get_ref<const std::string&>();
            !keys_.back().insert(key).second) {
          place_.fail(fmt::format("'{}' is given twice", printable(key)));
        }
        break;
      case Json::parse_event_t::value: break;
    }
    return true;
  }

 private:
  const Place& place_;
  std::vector<std::set<std::string>> keys_;
  int depth_ = 0;
};

[[noreturn]] void fail_type(std::string_view what, const char* expected, const Json& value,
                            const Place& place) {
  place.fail(fmt::format("{} must be {}, not {}", what, expected, value.type_name()));
}

std::string quoted(const char* key) { return fmt::format("'{}'", key); }

}  // namespace

void Place::fail(std::string_view what) const {
  throw DataError(text_.empty() ? std::string(what) : fmt::format("{}: {}", text_, what));
}

Place Place::within(std::string_view part) const {
  return Place(text_.empty() ? std::string(part) : fmt::format("{}: {}", text_, part));
}

Json parse_json(std::string_view text, const Place& place) {
  if (text.size() > kMaxBytes) {
    place.fail(fmt::format("JSON of {} bytes, where {} are allowed", text.size(), kMaxBytes));
  }
  Structure structure(place);
  try {
    return Json::parse(text, [&structure](int, Json::parse_event_t event, Json& parsed) {
      return structure(event, parsed);
    });
  } catch (const Json::exception& error) {
    place.fail(fmt::format("not valid JSON ({})",
                           printable(std::string_view(error.what()).substr(0, 200))));
  }
}

const Json& member(const Json& object, const char* key, const Place& place) {
  if (!object.is_object()) fail_type(quoted(key), "in an object", object, place);
  const auto found = object.find(key);
  if (found == object.end()) place.fail(fmt::format("'{}' is missing", key));
  return *found;
}

const Json* optional_member(const Json& object, const char* key, const Place& place) {
  if (!object.is_object()) fail_type(quoted(key), "in an object", object, place);
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string to_text(const Json& value, std::string_view what, const Place& place) {
  if (!value.is_string()) fail_type(what, "a string", value, place);
  return value.get<std::string>();
}

int64_t to_integer(const Json& value, std::string_view what, const Place& place) {
  if (!value.is_number_integer()) fail_type(what, "an integer", value, place);
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    place.fail(fmt::format("{} is too large: {}", what, value.get<uint64_t>()));
  }
  return value.get<int64_t>();
}

double to_number(const Json& value, std::string_view what, const Place& place) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  if (!value.is_number()) fail_type(what, "a number", value, place);
  return value.get<double>();
}

bool to_boolean(const Json& value, std::string_view what, const Place& place) {
  if (!value.is_boolean()) fail_type(what, "true or false", value, place);
  return value.get<bool>();
}

const Json& to_list(const Json& value, std::string_view what, const Place& place) {
  if (!value.is_array()) fail_type(what, "a list", value, place);
  return value;
}

const Json& to_object(const Json& value, std::string_view what, const Place& place) {
  if (!value.is_object()) fail_type(what, "an object", value, place);
  return value;
}

std::string text_member(const Json& object, const char* key, const Place& place) {
  return to_text(member(object, key, place), quoted(key), place);
}

int64_t integer_member(const Json& object, const char* key, const Place& place) {
  return to_integer(member(object, key, place), quoted(key), place);
}

bool boolean_member(const Json& object, const char* key, const Place& place) {
  return to_boolean(member(object, key, place), quoted(key), place);
}

const Json& list_member(const Json& object, const char* key, const Place& place) {
  return to_list(member(object, key, place), quoted(key), place);
}

const Json& object_member(const Json& object, const char* key, const Place& place) {
  return to_object(member(object, key, place), quoted(key), place);
}

std::pair<const std::string&, const Json&> to_union(const Json& value, std::string_view what,
                                                    const Place& place) {
  if (!value.is_object() || value.size() != 1) {
    fail_type(what, "an object with one key", value, place);
  }
  return {value.begin().key(), value.begin().value()};
}

}  // namespace gallop::model::exported
