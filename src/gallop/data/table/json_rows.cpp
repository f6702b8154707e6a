#include "gallop/data/table/json_rows.h"

#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_file.h"
#include "gallop/data/text_lines.h"

namespace gallop::data {

namespace {

using nlohmann::json;

/// A value of an object as text.
struct JsonValue {
  std::string text;
  bool is_list = false, is_nested = false;
};

/// Receives the values of the object on a line. Numbers keep the digits with which they are
/// written.
class ObjectParser final : public nlohmann::json_sax<json> {
 public:
  using Take = std::function<void(const std::string& key, JsonValue& value)>;

  explicit ObjectParser(Take take) : take_(std::move(take)) {}

  /// What is wrong with the line; empty if it is an object. `column` is its 1-based byte.
  std::string parse(std::string_view line, size_t& column) {
    depth_ = 0;
    column = 1;
    if (json::sax_parse(line.begin(), line.end(), this)) return {};
    if (depth_ == 0 && error_at_ == 0) return "is not a JSON object";
    column = error_at_;
    return "is not JSON";
  }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { return add(std::to_string(value)); }
  bool number_unsigned(uint64_t value) override { return add(std::to_string(value)); }
  bool number_float(double /*value*/, const std::string& text) override { return add(text); }
  bool string(std::string& value) override { return add(value); }
  bool binary(json::binary_t& /*value*/) override { return false; }
  bool start_object(size_t /*elements*/) override {
    if (depth_ > 0) value_.is_nested = true;
    ++depth_;
    return true;
  }
  bool end_object() override { return end(); }
  bool start_array(size_t /*elements*/) override {
    if (depth_ == 0) return false;
    value_.is_nested = value_.is_nested || depth_ > 1;
    value_.is_list = true;
    ++depth_;
    return true;
  }
  bool end_array() override { return end(); }
  bool key(std::string& name) override {
    if (depth_ > 1) return true;
    key_ = name;
    value_ = {};
    return true;
  }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const json::exception& /*error*/) override {
    error_at_ = std::max<size_t>(1, position);
    return false;
  }

 private:
  bool add(const std::string& text) {
    if (depth_ == 0) return false;
    if (depth_ == 1) {
      value_.text = text;
      take_(key_, value_);
      return true;
    }
    value_.text += kListSeparator;
    value_.text += text;
    return true;
  }
  bool end() {
    if (--depth_ == 1) take_(key_, value_);
    return true;
  }

  Take take_;
  int depth_ = 0;
  size_t error_at_ = 0;
  std::string key_;
  JsonValue value_;
};

}  // namespace

JsonRows::JsonRows(std::string file) : content_(read_data_file(file)) {
  files_ = {std::move(file)};
  ObjectParser parser([&](const std::string& key, JsonValue& /*value*/) {
    if (columns_.try_emplace(key, names_.size()).second) names_.push_back(key);
  });
  Lines lines(content_);
  size_t column = 0;
  while (const auto line = lines.next()) {
    if (!is_blank(*line)) parser.parse(*line, column);
  }
  rewind(std::vector<bool>(names_.size(), true));
  if (!names_.empty()) return;
  std::vector<Cell> cells;
  SkipPolicy skips(/*skips=*/false);
  next(cells, &skips);
  throw DataError(printable(files_[0]) + ": has no line that is a JSON object with keys");
}

void JsonRows::rewind(const std::vector<bool>& selected) {
  selected_ = selected;
  rest_ = content_;
  line_ = 0;
}

bool JsonRows::next(std::vector<Cell>& cells, SkipPolicy* skips) {
  std::string wrong;
  ObjectParser parser([&](const std::string& key, JsonValue& value) {
    const size_t column = columns_.at(key);
    if (!selected_[column]) return;
    if (value.is_nested && wrong.empty()) {
      wrong = fmt::format(
          "the value of '{}' is an object or a list of lists, and must be a string, a number, a "
          "boolean or a list of them",
          printable(key));
    }
    values_[column] = std::move(value.text);
    cells[column] = {.text = values_[column], .is_list = value.is_list};
  });
  while (!rest_.empty()) {
    Lines lines(rest_);
    const std::string_view line = *lines.next();
    rest_ = lines.rest();
    ++line_;
    if (is_blank(line)) continue;
    cells.assign(names_.size(), {});
    values_.assign(names_.size(), {});
    wrong.clear();
    size_t column = 0;
    const std::string syntax = parser.parse(line, column);
    if (syntax.empty() && wrong.empty()) return true;
    if (skips == nullptr) continue;
    const std::string at = syntax.empty() ? std::string() : fmt::format(":{}", column);
    skips->add("invalid line of JSON", fmt::format("{}:{}{}: {}", printable(files_[0]), line_, at,
                                                   syntax.empty() ? wrong : syntax));
  }
  return false;
}

}  // namespace gallop::data
