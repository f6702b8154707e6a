#include "gallop/data/augmentations/timm_policies.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/augmentations/timm_space.h"
#include "gallop/data/augmentations/warps.h"
#include "gallop/data/draw.h"

namespace gallop::data {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kScale = 10;  // The largest level, if mmax does not set another one.

/// The sections of a name after the first, such as "m9" and "tweights".
class Sections {
 public:
  explicit Sections(const std::string& text) : text_(text) {
    for (size_t at = text.find('-'); at != std::string::npos;) {
      const size_t end = text.find('-', at + 1);
      sections_.push_back(text.substr(at + 1, end == std::string::npos ? end : end - at - 1));
      at = end;
    }
  }

  /// The number of a section of this key, within limits; the last one of several.
  double number(const std::string& key, double otherwise, double least, double most) {
    double value = otherwise;
    for (std::string& section : sections_) {
      if (key_of(section) != key) continue;
      const auto number = parse_number<double>(std::string_view(section).substr(key.size()));
      if (!number || !(*number >= least && *number <= most)) {
        throw UsageError(
            fmt::format("auto-augment: '{}' of policy '{}' needs a number from {} to {}", section,
                        text_, least, most));
      }
      value = *number;
      section.clear();
    }
    return value;
  }

  int whole(const std::string& key, int otherwise, int least, int most) {
    const double value = number(key, otherwise, least, most);
    if (value == static_cast<int>(value)) return static_cast<int>(value);
    throw UsageError(fmt::format("auto-augment: '{}' of policy '{}' needs an integer", key, text_));
  }

  /// The text behind a key of one letter.
  std::string text(char key) {
    std::string value;
    for (std::string& section : sections_) {
      if (section.empty() || section[0] != key) continue;
      value = section.substr(1);
      section.clear();
    }
    return value;
  }

  /// Throws UsageError if a section has been used by none of the functions above.
  void finish(const char* known) const {
    for (const std::string& section : sections_) {
      if (section.empty()) continue;
      throw UsageError(fmt::format("auto-augment: '{}' of policy '{}' is unknown; sections are {}",
                                   section, text_, known));
    }
  }

 private:
  static std::string key_of(const std::string& section) {
    return section.substr(0, section.find_first_of("0123456789"));
  }

  std::string text_;
  std::vector<std::string> sections_;
};

/// The levels of a policy.
struct Levels {
  double deviation = 0;  ///< Of a normal distribution; infinite: uniform from 0 to the level.
  double most = kScale;

  double draw(double level, Philox& random) const {
    if (deviation == kInfinity) {
      level = draw_uniform(random, 0, level);
    } else if (deviation > 0) {
      float drawn = 0;
      draw_normal(random, level, deviation, {&drawn, 1});
      level = drawn;
    }
    return std::clamp(level, 0.0, most);
  }
};

class TimmPolicy : public Augmentation {
 public:
  AugmentStage stage() const override { return AugmentStage::kPixels; }
  bool supports_masks() const override { return false; }
  void check(const ImageShape& shape) const override {
    check_fill("auto-augment", options_.warps.fill, shape);
  }

 protected:
  TimmPolicy(TimmOptions options, const Levels& levels)
      : options_(std::move(options)), levels_(levels) {}

  /// Appends the operation with this probability, at a level around `level`.
  void append(TimmOperation operation, double probability, double level, const ImageShape& shape,
              Philox& random, std::vector<pixels::Operation>& operations) const {
    if (probability < 1 && random.uniform() > static_cast<float>(probability)) return;
    append_timm_operation(operation, levels_.draw(level, random), shape, options_, random,
                          operations);
  }

 private:
  TimmOptions options_;
  Levels levels_;
};

class TimmRandAugment final : public TimmPolicy {
 public:
  TimmRandAugment(Sections sections, const TimmOptions& options)
      : TimmRandAugment(levels_of(sections), sections, options) {}

  void draw(const ImageShape& shape, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    std::vector<TimmChoice> left = choices_;
    for (int i = 0; i < count_; ++i) {
      const size_t chosen = draw_choice(left, random);
      append(left[chosen].operation, probability_, level_, shape, random, operations);
      if (is_weighted_) left.erase(left.begin() + static_cast<ptrdiff_t>(chosen));
    }
  }
  using Augmentation::draw;

 private:
  TimmRandAugment(const Levels& levels, Sections& sections, const TimmOptions& options)
      : TimmPolicy(options, levels),
        level_(sections.whole("m", static_cast<int>(kScale), 0, 1000)),
        count_(sections.whole("n", 2, 0, 100)),
        probability_(sections.number("p", 0.5, 0, 1)) {
    const int increasing = sections.whole("inc", -1, 0, 1);
    // timm takes the text "0" as true.
    if (increasing == 0) {
      throw UsageError(
          "auto-augment: 'inc0' means inc1 in timm; leave inc out, or write inc1 if operations "
          "should change more with the level");
    }
    const std::string set = sections.text('t');
    sections.finish("m, n, p, mstd, mmax, inc and t");
    choices_ = timm_choices(set, increasing > 0);
    if (choices_.empty()) {
      throw UsageError(fmt::format(
          "auto-augment: there are no operations 't{}'; timm has tweights, t3a and t3aw", set));
    }
    is_weighted_ = set == "weights" || set == "3aw";
    if (is_weighted_ && count_ > static_cast<int>(choices_.size())) {
      throw UsageError(fmt::format("auto-augment: n{} is more than the {} operations of 't{}'",
                                   count_, choices_.size(), set));
    }
  }

  static Levels levels_of(Sections& sections) {
    constexpr double kUniformFrom = 100;
    Levels levels{.deviation = sections.number("mstd", 0, 0, 1e9),
                  .most = sections.number("mmax", kScale, 1, 1000)};
    if (levels.deviation > kUniformFrom) levels.deviation = kInfinity;
    return levels;
  }

  static size_t draw_choice(const std::vector<TimmChoice>& choices, Philox& random) {
    double sum = 0;
    for (const TimmChoice& one : choices) sum += one.weight;
    double at = double{random.uniform()} * sum;
    for (size_t i = 0; i + 1 < choices.size(); ++i) {
      if (at < choices[i].weight) return i;
      at -= choices[i].weight;
    }
    return choices.size() - 1;
  }

  double level_;
  int count_;
  double probability_;
  bool is_weighted_ = false;
  std::vector<TimmChoice> choices_;
};

class TimmAutoAugment final : public TimmPolicy {
 public:
  TimmAutoAugment(std::vector<TimmGroup> groups, const TimmOptions& options, const Levels& levels)
      : TimmPolicy(options, levels), groups_(std::move(groups)) {}

  void draw(const ImageShape& shape, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    for (const TimmStep& step : groups_[random.below(groups_.size())]) {
      append(step.operation, step.tenths / 10.0, step.level, shape, random, operations);
    }
  }
  using Augmentation::draw;

 private:
  std::vector<TimmGroup> groups_;
};

class TimmAugMix final : public TimmPolicy {
 public:
  TimmAugMix(Sections sections, const TimmOptions& options)
      : TimmPolicy(options, {.deviation = sections.number("mstd", kInfinity, 0, 1e9)}),
        level_(sections.whole("m", 3, 0, 1000)),
        width_(sections.whole("w", 3, 1, 100)),
        depth_(sections.whole("d", -1, 1, 100)),
        alpha_(sections.number("a", 1, 1e-3, 1e3)) {
    // As for inc, timm takes any number as true.
    if (sections.whole("b", -1, 0, 1) >= 0) {
      throw UsageError(
          "auto-augment: AugMix by blending chain after chain, as in timm for b0 and b1, is not "
          "supported; leave b out");
    }
    sections.finish("m, w, d, a, b and mstd");
  }

  void draw(const ImageShape& shape, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    const auto weights = draw_dirichlet(random, alpha_, static_cast<size_t>(width_));
    pixels::Mix mix{.original = 0,
                    .chains = {},
                    .blended = static_cast<float>(draw_dirichlet(random, alpha_, 2)[0])};
    const auto among = timm_augmix_operations();
    for (const double weight : weights) {
      const int depth = depth_ > 0 ? depth_ : 1 + static_cast<int>(random.below(3));
      pixels::Chain chain{.weight = static_cast<float>(weight), .operations = {}};
      for (int i = 0; i < depth; ++i) {
        append(among[random.below(among.size())], 1, level_, shape, random, chain.operations);
      }
      mix.chains.push_back(std::move(chain));
    }
    operations.emplace_back(std::move(mix));
  }
  using Augmentation::draw;

 private:
  double level_;
  int width_, depth_;
  double alpha_;
};

std::string first_section(std::string_view text) {
  return std::string(text.substr(0, text.find('-')));
}

}  // namespace

bool is_timm_policy(std::string_view text) {
  const std::string name = first_section(text);
  return name == "rand" || name == "augmix" || !timm_groups(name).empty();
}

std::unique_ptr<Augmentation> make_timm_policy(const std::string& text,
                                               pixels::Interpolation interpolation,
                                               const std::vector<double>& fill) {
  constexpr double kGray = 128, kTranslationOfAugMix = 0.3;
  TimmOptions options{.warps = {.interpolation = interpolation, .fill = fill}};
  if (fill.empty()) options.warps.fill = {kGray};
  const std::string name = first_section(text);
  Sections sections(text);
  if (name == "rand") return std::make_unique<TimmRandAugment>(std::move(sections), options);
  if (name == "augmix") {
    options.translate_fraction = kTranslationOfAugMix;  // As timm's training sets it.
    return std::make_unique<TimmAugMix>(std::move(sections), options);
  }
  const Levels levels{.deviation = sections.number("mstd", 0, 0, 1e9)};
  sections.finish("mstd");
  return std::make_unique<TimmAutoAugment>(timm_groups(name), options, levels);
}

}  // namespace gallop::data
