#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

namespace gallop::model::exported {

using Json = nlohmann::json;

/// The part of an archive that is being read: the beginning of its errors.
class Place {
 public:
  explicit Place(std::string text) : text_(std::move(text)) {}
  /// Throws DataError "PLACE: WHAT".
  [[noreturn]] void fail(std::string_view what) const;
  Place within(std::string_view part) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Parses JSON of at most 100 MB and 256 levels, in which no object has a key twice. Throws
/// DataError.
Json parse_json(std::string_view text, const Place& place);

/// The member of an object. Throws DataError if it is missing.
const Json& member(const Json& object, const char* key, const Place& place);
/// Null if it is missing or null. Throws DataError if `object` is none.
const Json* optional_member(const Json& object, const char* key, const Place& place);

/// These convert a value, and throw DataError that names it as `what` if it is of another type or
/// out of range. Infinite numbers are the texts "Infinity", "-Infinity" and "NaN".
std::string to_text(const Json& value, std::string_view what, const Place& place);
int64_t to_integer(const Json& value, std::string_view what, const Place& place);
double to_number(const Json& value, std::string_view what, const Place& place);
bool to_boolean(const Json& value, std::string_view what, const Place& place);
const Json& to_list(const Json& value, std::string_view what, const Place& place);
const Json& to_object(const Json& value, std::string_view what, const Place& place);

/// The same for a member.
std::string text_member(const Json& object, const char* key, const Place& place);
int64_t integer_member(const Json& object, const char* key, const Place& place);
bool boolean_member(const Json& object, const char* key, const Place& place);
const Json& list_member(const Json& object, const char* key, const Place& place);
const Json& object_member(const Json& object, const char* key, const Place& place);

/// The key and the value of an object with one key, which is how a union is stored.
std::pair<const std::string&, const Json&> to_union(const Json& value, std::string_view what,
                                                    const Place& place);

}  // namespace gallop::model::exported
