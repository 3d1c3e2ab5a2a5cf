"""Who is who when no list says who takes part: partitions of sides into speakers."""
