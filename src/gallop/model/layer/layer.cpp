#include "gallop/model/layer/layer.h"

#include "gallop/base/error.h"
#include "gallop/config/option_error.h"

namespace gallop::model {

int64_t Shape::channels() const {
  switch (kind) {
    case Kind::kImage: return sizes.front();
    case Kind::kSequence:
    case Kind::kVector: return sizes.back();
    case Kind::kTokens: return 0;
  }
  return 0;
}

Shape Shape::with_channels(int64_t channels) const {
  Shape shape = *this;
  (kind == Kind::kImage ? shape.sizes.front() : shape.sizes.back()) = channels;
  return shape;
}

std::vector<int64_t*> Shape::lengths() {
  if (kind == Kind::kImage) return {&sizes[1], &sizes[2]};
  return {&sizes[0]};
}

std::string Shape::describe() const {
  std::string text;
  switch (kind) {
    case Kind::kImage: text = "an image"; break;
    case Kind::kSequence: text = "a sequence"; break;
    case Kind::kVector: text = "a vector"; break;
    case Kind::kTokens: text = "tokens"; break;
  }
  text += " [";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

at::Tensor Layer::forward_activated(const at::Tensor& /*x*/, kernel::Activation /*kind*/) {
  throw InternalError("layer: this layer fuses no activation");
}

void LayerContext::fail(const std::string& message) const {
  throw config::OptionError(path, message);
}

void LayerContext::require(bool condition, const std::string& message) const {
  if (!condition) fail(message);
}

void LayerContext::require_kind(Shape::Kind kind, const std::string& hint) const {
  if (shape.kind == kind) return;
  std::string wanted;
  switch (kind) {
    case Shape::Kind::kImage: wanted = "an image [C, H, W]"; break;
    case Shape::Kind::kSequence: wanted = "a sequence [T, C]"; break;
    case Shape::Kind::kVector: wanted = "a vector [C]"; break;
    case Shape::Kind::kTokens: wanted = "tokens [T]"; break;
  }
  fail("needs " + wanted + ", but its input is " + shape.describe() +
       (hint.empty() ? "" : "; " + hint));
}

void LayerContext::require_sequence() const {
  require_kind(Shape::Kind::kSequence,
               shape.kind == Shape::Kind::kTokens  ? "put an embedding before it"
               : shape.kind == Shape::Kind::kImage ? "put to-sequence before it"
                                                   : "arrays with rows [T, C] are sequences");
}

void LayerContext::require_image_or_sequence() const {
  if (shape.kind == Shape::Kind::kImage || shape.kind == Shape::Kind::kSequence) return;
  fail("needs an image [C, H, W] or a sequence [T, C], but its input is " + shape.describe() +
       (shape.kind == Shape::Kind::kTokens ? "; put an embedding before it" : ""));
}

void LayerContext::require_unpadded(const std::string& hint) const {
  require(!mask || shape.kind != Shape::Kind::kSequence,
          "would mix tokens with the padding behind short texts; " + hint);
}

}  // namespace gallop::model
