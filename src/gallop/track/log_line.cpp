#include "gallop/track/log_line.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/checked.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"
#include "gallop/config/json_numbers.h"

namespace gallop::track {

namespace {

using Json = nlohmann::ordered_json;

std::string checksum(std::string_view text) { return fmt::format("{:016x}", xxh3_64(text)); }

// A SAX parser, as building documents takes 50% longer, and a log may have millions of lines.
// Unknown keys of later versions are skipped.
class RecordReader final : public nlohmann::json_sax<Json> {
 public:
  Record record;

  bool is_whole() const { return session_ && step_ && time_ && kind_; }

  bool null() override { return is_passed_over(); }
  bool boolean(bool) override { return is_passed_over(); }
  bool binary(binary_t&) override { return is_passed_over(); }
  bool number_integer(number_integer_t number) override { return integer(number); }
  bool number_unsigned(number_unsigned_t number) override {
    if (const auto fits = checked_cast<int64_t>(number)) return integer(*fits);
    return number_float(static_cast<double>(number), {});
  }

  bool number_float(number_float_t number, const string_t&) override {
    if (section_ == Section::kTop && key_ == "time") {
      record.time = number;
      return time_ = true;
    }
    if (section_ != Section::kValues) return is_passed_over();
    record.values.insert_or_assign(record.values.end(), key_, number);
    return true;
  }

  bool string(string_t& text) override {
    if (section_ == Section::kTexts) {
      record.texts.insert_or_assign(key_, std::move(text));
      return true;
    }
    if (section_ == Section::kTop && key_ == "kind") {
      record.kind = std::move(text);
      return kind_ = true;
    }
    if (section_ != Section::kValues) return is_passed_over();
    const auto number = parse_number<double>(text);  // "nan" and "inf".
    return number && number_float(*number, text);
  }

  bool key(string_t& name) override {
    if (section_ != Section::kUnknown) key_ = std::move(name);
    return true;
  }

  bool start_object(std::size_t) override {
    const bool is_section = depth_ == 1 && (key_ == "values" || key_ == "texts");
    if (depth_ > 0 && !is_section && !is_passed_over()) return false;
    if (depth_ == 1) {
      section_ = !is_section        ? Section::kUnknown
                 : key_ == "values" ? Section::kValues
                                    : Section::kTexts;
    }
    ++depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0 || !is_passed_over()) return false;
    section_ = Section::kUnknown;
    ++depth_;
    return true;
  }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }

  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  enum class Section { kTop, kValues, kTexts, kUnknown };

  bool integer(int64_t number) {
    if (section_ == Section::kTop && key_ == "session") {
      record.session = number;
      return session_ = true;
    }
    if (section_ == Section::kTop && key_ == "step") {
      record.step = number;
      return step_ = true;
    }
    return number_float(static_cast<double>(number), {});
  }

  bool end() {
    if (--depth_ == 1) section_ = Section::kTop;
    return true;
  }

  // Whether a value may occur here that is not part of a record.
  bool is_passed_over() const {
    if (section_ != Section::kTop) return section_ == Section::kUnknown;
    return key_ != "session" && key_ != "step" && key_ != "time" && key_ != "kind" &&
           key_ != "values" && key_ != "texts";
  }

  int depth_ = 0;
  Section section_ = Section::kTop;
  std::string key_;
  bool session_ = false, step_ = false, time_ = false, kind_ = false;
};

}  // namespace

std::string line_of(const Record& record) {
  Json json = {{"session", record.session},
               {"step", record.step},
               {"time", record.time},
               {"kind", record.kind}};
  for (const auto& [name, value] : record.values) json["values"][name] = config::number_json(value);
  for (const auto& [name, text] : record.texts) json["texts"][name] = text;
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return fmt::format("{}\t{}\n", text, checksum(text));
}

std::optional<Record> record_of(std::string_view line) {
  if (line.size() < kChecksumDigits + 1 || line[line.size() - kChecksumDigits - 1] != '\t')
    return std::nullopt;
  const std::string_view text = line.substr(0, line.size() - kChecksumDigits - 1);
  if (line.substr(line.size() - kChecksumDigits) != checksum(text)) return std::nullopt;
  RecordReader reader;
  if (!Json::sax_parse(text, &reader) || !reader.is_whole()) return std::nullopt;
  return std::move(reader.record);
}

}  // namespace gallop::track
