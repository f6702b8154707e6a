# Compiles recipes/*.yaml into the program, so that a cluster needs no other files.
function(gallop_embed_recipes target)
  file(GLOB recipes CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/recipes/*.yaml)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/built_in_recipes.cpp)
  set(entries "")
  foreach(recipe IN LISTS recipes)
    get_filename_component(name ${recipe} NAME_WE)
    file(READ ${recipe} text)
    string(APPEND entries "      {\"${name}\", R\"yaml(${text})yaml\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${recipe})
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
#include "gallop/app/built_in_recipes.h"

namespace gallop::app {

const std::vector<BuiltInRecipe>& built_in_recipes() {
  static const std::vector<BuiltInRecipe> kRecipes = {
@entries@  };
  return kRecipes;
}

}  // namespace gallop::app
]])
  target_sources(${target} PRIVATE ${output})
endfunction()
