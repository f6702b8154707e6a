#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/config/component.h"

namespace gallop::config {
namespace {

struct Shape {
  explicit Shape(int64_t number) : corners(number) {}
  int64_t corners;
};
struct NoOptions {};
void visit(Visitor& /*visitor*/, NoOptions& /*options*/) {}

std::unique_ptr<Shape> make_triangle(const NoOptions& /*options*/) {
  return std::make_unique<Shape>(3);
}
std::unique_ptr<Shape> make_square(const NoOptions& /*options*/) {
  return std::make_unique<Shape>(4);
}

TEST(Registry, ReportsBothOriginsOfADuplicateName) {
  Registry<Shape> shapes("shape");
  shapes.add("triangle", "three corners", make_triangle);
  shapes.set_origin("the plug-in /lib/libmine.so");
  shapes.add("square", "four corners", make_square);
  EXPECT_EQ(shapes.find("triangle")->origin, "Gallop");
  EXPECT_EQ(shapes.find("square")->origin, "the plug-in /lib/libmine.so");
  try {
    shapes.add("triangle", "another", make_triangle);
    FAIL() << "the name is taken";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "shape 'triangle' is registered twice: by Gallop and by the plug-in "
                 "/lib/libmine.so; one of them needs another name");
  }
}

TEST(Registry, CopiesAreIndependent) {
  Registry<Shape> shapes("shape");
  shapes.add("triangle", "three corners", make_triangle);
  Registry<Shape> more = shapes;
  more.add("square", "four corners", make_square);
  EXPECT_EQ(shapes.find("square"), nullptr);
  EXPECT_EQ(more.build({more, "square"})->corners, 4);
  EXPECT_EQ(more.build({more, "triangle"})->corners, 3);
}

}  // namespace
}  // namespace gallop::config
